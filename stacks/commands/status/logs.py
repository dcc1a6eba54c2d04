"""Which container has the log of a RayCluster or of a RayJob. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.cluster import AMBIENT, Connection
from components.ray_job.manifests import SUBMITTER_LABEL
from components.rollout.pods import Pod
from core.suggestions import names_hint
from stacks.commands.status.clusters import phase
from stacks.commands.status.kubectl import kubectl
from stacks.commands.status.targets import NoSuchTargetError, Target

HEAD = "head"
"""The word that selects the head's pod."""

_SUBMITTER = "ray-job-submitter"
"""Container of the head that submits the job in SidecarMode (ray-operator/controllers/ray/utils/constant.go)."""

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

    `connection`: for messages. Raises NoLogError, and NoSuchTargetError for a pod that does
    not exist.
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
        raise NoLogError(f"{target.title} has no RayCluster now: `python -m stacks status` shows why")
    if target.head is None:
        raise NoLogError(f"the head of {target.title} has no pod now: `python -m stacks status` shows why")
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
            raise NoLogError(f"{target.title} has no submitter pod now: `python -m stacks status` shows why")
        return _place(target, max(pods, key=lambda each: str(each["metadata"].get("creationTimestamp"))))
    if mode == "SidecarMode":
        return _of_head(target, _SUBMITTER)
    head = _of_head(target)
    job = (target.body.get("status") or {}).get("jobId")
    if not job:
        raise NoLogError(f"{target.title} has no job yet: in {mode} its log is in the head, by the job's id")
    words = ("exec", "-n", head.namespace, head.pod, "-c", head.container, "--", "cat", _DRIVER_LOG.format(job=job))
    raise NoLogError(
        f"in {mode} the output of {target.title} is in a file of the head, not in a container's log. This shows it: "
        f"{kubectl(connection, *words)}"
    )


def _place(target: Target, pod: Pod, container: str | None = None) -> Place:
    """The place, if the pod has a log. `container`: None for its first, which runs Ray or submits the job."""
    name = pod["metadata"]["name"]
    if phase(pod) == "Pending" and not pod["spec"].get("nodeName"):
        raise NoLogError(f"pod {target.namespace}/{name} has no node yet: `python -m stacks status` shows why")
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
