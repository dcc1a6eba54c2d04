"""The status of a RayJob, and why it does not run. Pure functions.

The fields are those of ray-operator/apis/ray/v1/rayjob_types.go (KubeRay 1.6.2).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from components.queues.settings import Backend
from components.ray_cluster.readiness import about, pod_reasons, warnings
from components.ray_job.manifests import SUBMITTER_LABEL
from stacks.commands.status.clusters import ClusterStatus, owner_of, waits_in_kueue, why_it_waits
from stacks.commands.status.snapshot import Body, Found, Live, seconds_between

NEW = "New"
"""Shown for a RayJob that the operator has not looked at: its field is empty."""

_FAILED = ("Failed", "ValidationFailed")
_NOT_SUBMITTED = ("", "PENDING")
"""Statuses of a job before Ray runs it."""


@dataclass(frozen=True)
class JobStatus:
    """The status of a RayJob."""

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
    """The RayCronJob that it belongs to: `RayCronJob nightly`; of a run, its job template and who runs it:
    `template finetune, alice`."""


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
    why = tuple(dict.fromkeys(_reasons(body, deployment, found, backend, clusters)))
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
    body: Body, deployment: str, found: Found, backend: Backend | None, clusters: Mapping[str, ClusterStatus]
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
        yield from _of_cluster(status.get("rayClusterName"), clusters)
    elif deployment not in ("Running", "Complete", "Suspended") or waits_in_kueue(body):
        if waits := why_it_waits(body, found, backend):
            yield f"it waits in its queue: {waits}"
        if backend == "volcano" and spec.get("clusterSelector"):
            # volcano_scheduler.go: handleRayJob
            yield "with Volcano, KubeRay starts no RayJob on an existing RayCluster: submit it there (`ray job submit`)"
        yield from _of_cluster(status.get("rayClusterName"), clusters)
        yield from warnings(about(found.all("events"), {metadata["name"]}))
        if deployment == NEW and not waits_in_kueue(body):
            yield "the operator has not looked at it: does it run, and does it watch the namespace?"


def _of_submitter(name: str, found: Found) -> Iterator[str]:
    for pod in found.all("pods"):
        if (pod["metadata"].get("labels") or {}).get(SUBMITTER_LABEL) == name:
            yield from pod_reasons(pod, {})


def _of_cluster(name: str | None, clusters: Mapping[str, ClusterStatus]) -> Iterator[str]:
    if not name:
        return
    if name not in clusters:
        yield f"its RayCluster {name} does not exist"
    elif not clusters[name].ok:
        yield from (f"its RayCluster {name} is {clusters[name].state}: {line}" for line in clusters[name].reasons)
