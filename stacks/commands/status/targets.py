"""What a name on the command line means among the objects of a stack's tenants and its job templates; which container
has its log, and whether it can be woken. Pure functions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.access.personas import RAY_KINDS
from components.cluster import AMBIENT, Connection
from components.job_template.settings import JobTemplateSettings
from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_job.manifests import SUBMITTER, SUBMITTER_LABEL
from components.ray_service.applications import clusters_of
from components.rollout.pods import Pod, kind, leaves
from core.body import Body
from core.problems import in_one_line
from core.suggestions import names_hint
from stacks.commands.status.clusters import phase, waits_in_kueue
from stacks.commands.status.snapshot import Found
from stacks.settings import StackSettings


class NoSuchTargetError(Exception):
    """The name means nothing, or several things; the message lists what there is."""


@dataclass(frozen=True)
class Target:
    """A RayCluster, RayJob or RayService."""

    kind: str
    namespace: str
    body: Body
    found: Found
    """Everything in its namespace."""

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def title(self) -> str:
        """Its name for messages: `RayCluster team-a/training`."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def cluster(self) -> Body | None:
        """The RayCluster itself, or the one that runs the job, or serves, or is to serve; None if it does not exist."""
        if self.kind == "RayCluster":
            return self.body
        status = self.body.get("status") or {}
        name = next(iter(clusters_of(status).values()), status.get("rayClusterName"))
        return next((each for each in self.found.all("rayclusters") if each["metadata"]["name"] == name), None)

    @property
    def head(self) -> Pod | None:
        """The pod of that RayCluster's head."""
        name = self.cluster["metadata"]["name"] if self.cluster else None
        heads = (
            pod
            for pod in self.found.all("pods")
            if kind(pod) == "head" and pod["metadata"]["labels"].get(CLUSTER_LABEL) == name and not leaves(pod)
        )
        return next(heads, None)


def target(word: str, namespaces: Mapping[str, Found]) -> Target:
    """The object of that name, or `<namespace>/<name>`. A RayCluster goes before a RayJob of the same name.

    Raises NoSuchTargetError.
    """
    namespace, _, name = word.rpartition("/")
    if namespace and namespace not in namespaces:
        raise NoSuchTargetError(f"the stack has no namespace {namespace!r}: {names_hint(namespace, namespaces)}")
    all_of_them = list(_targets(namespaces))
    meant = [each for each in all_of_them if each.name == name and namespace in ("", each.namespace)]
    within = list(dict.fromkeys(each.namespace for each in meant))
    if len(within) > 1:
        raise needs_namespace(name, within)
    if not meant:
        raise NoSuchTargetError(_unknown(word, all_of_them, namespaces))
    return meant[0]


def needs_namespace(name: str, within: Iterable[str]) -> NoSuchTargetError:
    """The error for a name that objects in these namespaces have, to be raised."""
    several = " or ".join(f"{each}/{name}" for each in within)
    return NoSuchTargetError(f"{name!r} exists in several namespaces: write {several}")


def _targets(namespaces: Mapping[str, Found]) -> Iterator[Target]:
    for namespace, found in namespaces.items():
        for plural, title in zip(RAY_KINDS, ("RayCluster", "RayJob", "RayService"), strict=True):
            yield from (Target(title, namespace, body, found) for body in found.all(plural))


def _unknown(word: str, known: list[Target], namespaces: Mapping[str, Found]) -> str:
    namespace, _, name = word.rpartition("/")
    names = {
        f"{each.namespace}/{each.name}" if namespace else each.name
        for each in known
        if namespace in ("", each.namespace)
    }
    where = f"namespace {namespace!r} has" if namespace else "the stack's namespaces have"
    hidden = [each for each, found in namespaces.items() if "rayclusters" in found.unreadable]
    beside = f" (this account must not read {', '.join(hidden)})" if hidden else ""
    return f"{where} no RayCluster, RayJob or RayService {name!r}: {names_hint(word, names)}{beside}"


def job_template(stack: StackSettings, word: str) -> tuple[str, JobTemplateSettings]:
    """The job template of that name, or `<namespace>/<name>`, with its namespace. Raises NoSuchTargetError."""
    namespace, _, name = word.rpartition("/")
    known = [(tenant.namespace_name, each) for tenant in stack.tenants for each in tenant.job_templates]
    meant = [(where, each) for where, each in known if each.name == name and namespace in ("", where)]
    if len(meant) > 1:
        several = " or ".join(f"{where}/{each.name}" for where, each in meant)
        raise NoSuchTargetError(f"several tenants have a job template {name!r}: write {several}")
    if not meant:
        names = {f"{where}/{each.name}" if namespace else each.name for where, each in known}
        raise NoSuchTargetError(f"the stack file has no job template {word!r}: {names_hint(word, names)}")
    return meant[0]


HEAD = "head"
"""The word that selects the head's pod."""

_DRIVER_LOG = "/tmp/ray/session_latest/logs/job-driver-{job}.log"  # noqa: S108 (in a pod)
"""Ray's log of a submitted job's driver (Ray: dashboard/modules/job/common.py, JOB_LOGS_PATH_TEMPLATE)."""


class NoLogError(Exception):
    """There is no log to read now; the message has the reason, and what to do."""


@dataclass(frozen=True)
class Place:
    """A container with a log."""

    namespace: str
    pod: str
    container: str


def place_of_log(target: Target, pod: str | None, connection: Connection = AMBIENT) -> Place:
    """The container with the log. `pod`: None for a RayJob's driver and else for the head; `head`; or a pod's name.

    `connection`: for messages. Raises NoLogError, and NoSuchTargetError for a pod that does not exist.
    """
    if why := target.found.unreadable.get("pods"):
        raise NoLogError(f"the pods of namespace {target.namespace} cannot be read: {why}")
    if pod not in (None, HEAD):
        return _of_pod(target, str(pod))
    if pod is None and target.kind == "RayJob":
        return _of_driver(target, connection)
    return _of_head(target)


def _of_pod(target: Target, name: str) -> Place:
    pods = {each["metadata"]["name"]: each for each in target.found.all("pods")}
    if name not in pods:
        message = f"namespace {target.namespace!r} has no pod {name!r}: {names_hint(name, pods)}"
        raise NoSuchTargetError(message)
    return _place(target, pods[name])


def _of_head(target: Target, container: str | None = None) -> Place:
    if target.cluster is None:
        raise NoLogError(f"{target.title} has no RayCluster now: `ray-platform status` shows why")
    if target.head is None:
        raise NoLogError(f"the head of {target.title} has no pod now: `ray-platform status` shows why")
    return _place(target, target.head, container)


def _of_driver(target: Target, connection: Connection) -> Place:
    mode = target.body["spec"].get("submissionMode") or "K8sJobMode"
    if mode == "K8sJobMode":
        pods = [
            each
            for each in target.found.all("pods")
            if (each["metadata"].get("labels") or {}).get(SUBMITTER_LABEL) == target.name
        ]
        if not pods:
            raise NoLogError(f"{target.title} has no submitter pod now: `ray-platform status` shows why")
        return _place(target, max(pods, key=lambda each: str(each["metadata"].get("creationTimestamp"))))
    if mode == "SidecarMode":
        return _of_head(target, SUBMITTER)
    head = _of_head(target)
    job = (target.body.get("status") or {}).get("jobId")
    if not job:
        raise NoLogError(f"{target.title} has no job yet: in {mode} its log is in the head, by the job's id")
    words = ("exec", "-n", head.namespace, head.pod, "-c", head.container, "--", "cat", _DRIVER_LOG.format(job=job))
    raise NoLogError(
        f"in {mode} the output of {target.title} is in a file of the head, not in a container's log. With the token of "
        f"its RayCluster: `ray job logs --address URL {in_one_line(shlex.quote(job))}`, with the URL and the "
        f"token that `ray-platform dashboard` leads to. A Kubernetes administrator: {kubectl(connection, *words)}"
    )


def _place(target: Target, pod: Pod, container: str | None = None) -> Place:
    """The place, if the pod has a log. `container`: None for its first, which runs Ray or submits the job."""
    name = pod["metadata"]["name"]
    if phase(pod) == "Pending" and not pod["spec"].get("nodeName"):
        raise NoLogError(f"pod {target.namespace}/{name} has no node yet: `ray-platform status` shows why")
    known = container or str(pod["spec"]["containers"][0]["name"])
    if why := _not_started(pod, known):
        raise NoLogError(f"container {known} of pod {target.namespace}/{name} has not started: {why}")
    return Place(target.namespace, name, known)


def _not_started(pod: Pod, container: str) -> str:
    """Why the container has never started; of one that has ended and starts again, the log is that of its last run."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    known: Any = next((each for each in statuses if each["name"] == container), {})
    waiting = (known.get("state") or {}).get("waiting")
    if not waiting or (known.get("lastState") or {}).get("terminated"):
        return ""
    return ": ".join(filter(None, [waiting.get("reason") or "it waits", waiting.get("message")]))


FIELD_MANAGER = "ray-platform-wake"
"""Owner of `spec.suspend` of a RayCluster that was woken."""

WHO_WAKES = "A tenant's admins may wake its RayClusters; one that rests is also woken by a RayJob that selects it"
"""For those who must not."""


class NotWokenError(Exception):
    """The RayCluster is not woken; the message has the reason, and what to do."""


def wake_patch(target: Target, settings: StackSettings) -> dict[str, Any] | None:
    """The request to the API server (components.cluster.request) that wakes a RayCluster; None if it is not
    suspended.

    Raises NotWokenError.
    """
    if target.kind != "RayCluster":
        raise NotWokenError(f"{target.title} is not a RayCluster: only a RayCluster is woken")
    body = target.body
    if deleted := body["metadata"].get("deletionTimestamp"):
        raise NotWokenError(f"{target.title} is being deleted since {deleted}")
    if waits_in_kueue(body):
        raise NotWokenError(f"{target.title} is suspended by Kueue, until there is room for it in its queue")
    if not _is_suspended(body):
        return None
    if _by_the_stack_file(target, settings):
        raise NotWokenError(f"the stack file suspends {target.title}: set overrides.suspend to false there")
    # KubeRay resumes a RayCluster only by an explicit false (ray-operator/controllers/ray/raycluster_controller.go:
    # calculateStatus).
    return {
        "method": "PATCH",
        "path": f"/apis/ray.io/v1/namespaces/{target.namespace}/rayclusters/{target.name}",
        "query": {"fieldManager": FIELD_MANAGER},
        "headers": {"Content-Type": "application/merge-patch+json"},
        "body": {"spec": {"suspend": False}},
    }


def _is_suspended(body: Mapping[str, Any]) -> bool:
    """Whether it is suspended, or was and has lost the field with which KubeRay would resume it."""
    given = body["spec"].get("suspend")
    return bool(given) or (given is None and (body.get("status") or {}).get("state") == "suspended")


def _by_the_stack_file(target: Target, settings: StackSettings) -> bool:
    return any(
        cluster.overrides.get("suspend")
        for tenant in settings.tenants
        for cluster in tenant.clusters
        if (tenant.namespace_name, cluster.name) == (target.namespace, target.name)
    )


def kubectl(connection: Connection, *words: str) -> str:
    """The command for that cluster. Words are quoted: some are what users write into their objects."""
    context = ["--context", connection.context] if connection.context else []
    return in_one_line(shlex.join(["kubectl", *context, *words]))
