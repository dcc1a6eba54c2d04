"""The status of a RayJob and of a RayService, which have RayClusters of their own, and why they do not run or serve.
Pure functions.

The fields are those of ray-operator/apis/ray/v1/rayjob_types.go (KubeRay 1.6.2). components/ray_service/applications.py
reads a service's applications.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from components.queues.settings import Backend
from components.ray_cluster.readiness import about, conditions, not_looked, pod_reasons, warnings
from components.ray_job.manifests import SUBMITTER_LABEL
from components.ray_service.applications import (
    Application,
    applications,
    clusters_of,
    is_serving,
    replace_it,
    unanswered,
)
from core.body import Body
from kuberay.pods import hashed
from stacks.commands.status.clusters import ClusterStatus, owner_of, waits_in_kueue, why_it_waits
from stacks.commands.status.snapshot import Found, Live, seconds_between

NEW = "New"
"""Shown for a RayJob that the operator has not looked at: its field is empty."""

_FAILED = ("Failed", "ValidationFailed")
_NOT_SUBMITTED = ("", "PENDING")
"""Statuses of a job before Ray runs it."""


@dataclass(frozen=True)
class JobStatus:
    name: str
    deployment: str
    """KubeRay's `jobDeploymentStatus`, or `New`; of one that was not found `Missing` or `Unknown`."""
    job: str | None
    """Ray's `jobStatus`; None before Ray knows the job."""
    cluster: str | None
    """Its RayCluster."""
    age: int | None
    """Seconds since its creation."""
    since: str | None
    """When KubeRay began to work on it, in RFC 3339."""
    duration: int | None
    """Seconds since then, up to its end."""
    ok: bool
    """Whether it runs, has succeeded, was stopped, or is suspended as its spec asks for."""
    reason: str | None = None
    message: str | None = None
    """KubeRay's `reason` and `message` of a failure; `message` also of a running job, from Ray."""
    reasons: tuple[str, ...] = ()
    """Why it does not run, or has failed."""
    in_stack_file: bool = False
    owner: str | None = None
    """The RayCronJob that it belongs to: `RayCronJob nightly`; of a run, its job template and size, who runs it,
    and the code that it has brought: `template finetune, size large, alice, code 3fa8b2c1d0e9`."""


def missing_job(name: str, found: Found, plural: str = "rayjobs") -> JobStatus:
    """A job of the stack file that was not found. `plural`: of the kind that shows it."""
    known, why = found.absence(plural)
    state = "Missing" if known else "Unknown"
    return JobStatus(name, state, None, None, None, None, None, ok=False, reasons=(why,), in_stack_file=True)


def job_status(
    body: Body, found: Found, live: Live, backend: Backend | None, clusters: Mapping[str, ClusterStatus]
) -> JobStatus:
    """The status of a RayJob. `clusters`: the RayClusters of its namespace, by name."""
    metadata, status = body["metadata"], body.get("status") or {}
    deployment = status.get("jobDeploymentStatus") or NEW
    why = tuple(dict.fromkeys(_reasons(body, deployment, found, live, backend, clusters)))
    end = status.get("endTime")
    return JobStatus(
        metadata["name"],
        deployment,
        status.get("jobStatus") or None,
        status.get("rayClusterName") or None,
        seconds_between(metadata.get("creationTimestamp"), live.at),
        status.get("startTime"),
        seconds_between(status.get("startTime"), datetime.fromisoformat(end) if end else live.at),
        _as_desired(body, deployment, why),
        status.get("reason") or None,
        status.get("message") or None,
        why,
        owner=owner_of(body),
    )


def _as_desired(body: Body, deployment: str, why: tuple[str, ...]) -> bool:
    if body["metadata"].get("deletionTimestamp"):
        return False
    if deployment == "Suspended":
        return bool(body["spec"].get("suspend")) and not waits_in_kueue(body)
    return deployment in ("Complete", "Waiting") or (deployment == "Running" and not why)


def _reasons(
    body: Body,
    deployment: str,
    found: Found,
    live: Live,
    backend: Backend | None,
    clusters: Mapping[str, ClusterStatus],
) -> Iterator[str]:
    metadata, spec, status = body["metadata"], body["spec"], body.get("status") or {}
    if deleted := metadata.get("deletionTimestamp"):
        yield f"it is being deleted since {deleted}"
    elif deployment in _FAILED:
        yield ": ".join(filter(None, [status.get("reason") or "it failed", status.get("message")]))
    elif deployment == "Waiting":
        yield "InteractiveMode: it waits until somebody submits the job and sets spec.jobId to its id"
    elif deployment == "Running" and (status.get("jobStatus") or "") in _NOT_SUBMITTED:
        yield from _of_submitter(metadata["name"], found)
        yield from _cluster_of_job(status.get("rayClusterName"), clusters)
    elif deployment not in ("Running", "Complete", "Suspended") or waits_in_kueue(body):
        if waits := why_it_waits(body, found, backend):
            yield f"it waits in its queue: {waits}"
        if backend == "volcano" and spec.get("clusterSelector"):
            # volcano_scheduler.go: handleRayJob
            yield "with Volcano, KubeRay starts no RayJob on an existing RayCluster: submit it there (`ray job submit`)"
        yield from _cluster_of_job(status.get("rayClusterName"), clusters)
        yield from warnings(about(found.all("events"), {metadata["name"]}))
        if deployment == NEW and not waits_in_kueue(body):
            yield not_looked("it", live.operator_pods, live.at)


def _of_submitter(name: str, found: Found) -> Iterator[str]:
    for pod in found.all("pods"):
        if (pod["metadata"].get("labels") or {}).get(SUBMITTER_LABEL) == name:
            yield from pod_reasons(pod, {})


def _cluster_of_job(name: str | None, clusters: Mapping[str, ClusterStatus]) -> Iterator[str]:
    if not name:
        return
    if name not in clusters:
        yield f"its RayCluster {name} does not exist"
    elif not clusters[name].ok:
        yield from (f"its RayCluster {name} is {clusters[name].state}: {line}" for line in clusters[name].reasons)


@dataclass(frozen=True)
class ServiceStatus:
    name: str
    ok: bool
    """Whether it serves, and all active applications run."""
    status: str | None
    """KubeRay's `serviceStatus`; None while it does not serve; of one that was not found `Missing` or `Unknown`."""
    endpoints: int
    """Pods that serve."""
    clusters: Mapping[str, str]
    """Its RayClusters, by `active` and `pending`."""
    age: int | None
    """Seconds since its creation."""
    applications: tuple[Application, ...] = ()
    conditions: tuple[Body, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it does not serve; of one that does, what of its update is not ready."""
    in_stack_file: bool = False
    owner: str | None = None


def missing_service(name: str, found: Found) -> ServiceStatus:
    """A RayService of the stack file that was not found."""
    known, why = found.absence("rayservices")
    state = "Missing" if known else "Unknown"
    return ServiceStatus(
        name, ok=False, status=state, endpoints=0, clusters={}, age=None, reasons=(why,), in_stack_file=True
    )


def service_status(body: Body, found: Found, live: Live, clusters: Mapping[str, ClusterStatus]) -> ServiceStatus:
    """The status of a RayService. `clusters`: the RayClusters of its namespace, by name."""
    metadata, status = body["metadata"], body.get("status") or {}
    found_applications, own = applications(status), clusters_of(status)
    reported = conditions(body)
    serves = is_serving(status) and not metadata.get("deletionTimestamp")
    why = [
        *([f"it is being deleted since {metadata['deletionTimestamp']}"] if metadata.get("deletionTimestamp") else []),
        *([] if serves else _not_ready(reported)),
        *(line for each in found_applications for line in each.problems),
        *(line for role, name in own.items() for line in _cluster_of_service(role, name, clusters)),
        *_unanswered(body, found),
        *([] if serves else warnings(about(found.all("events"), {metadata["name"]}))),
    ]
    if not status:
        why.append(not_looked("it", live.operator_pods, live.at))
    return ServiceStatus(
        metadata["name"],
        serves and all(each.runs for each in found_applications if each.role == "active"),
        status.get("serviceStatus") or None,
        int(status.get("numServeEndpoints") or 0),
        own,
        seconds_between(metadata.get("creationTimestamp"), live.at),
        tuple(found_applications),
        tuple(reported),
        tuple(dict.fromkeys(why)),
        owner=owner_of(body),
    )


def _unanswered(body: Body, found: Found) -> Iterator[str]:
    live = {each["metadata"]["name"]: each for each in found.all("rayclusters")}
    name = unanswered(body, live)
    if name is None:
        return
    silent = f"the head of its pending RayCluster {name} is Ready, but Ray there reports no application to KubeRay"
    if hashed(body["spec"]["rayClusterConfig"]) == hashed(live[name]["spec"]):
        yield f"{silent}: Ray still starts, does not answer (as on simulated nodes), or refuses serveConfigV2"
    else:
        yield (
            f"KubeRay has not applied the last edit of its cluster: {silent}, and until then KubeRay does not compare "
            f"it with the spec. Run {replace_it(body['metadata']['namespace'], name)}"
        )


def _not_ready(reported: Sequence[Body]) -> list[str]:
    return [
        f"Ready is {each['status']}: {each['reason']}: {each['message']}"
        for each in reported
        if each["type"] == "Ready"
    ]


def _cluster_of_service(role: str, name: str, clusters: Mapping[str, ClusterStatus]) -> Iterator[str]:
    if name in clusters and not clusters[name].ok:
        found = clusters[name]
        yield from (f"its {role} RayCluster {name} is {found.state}: {line}" for line in found.reasons)
