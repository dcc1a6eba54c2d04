"""Waits until a Job that connects to an external cluster has done its part, or reports why it has not. Only reads."""

from collections.abc import Callable, Sequence
from typing import Literal

from components.cluster import Cluster, ClusterUnreachableError
from components.ray_cluster.readiness import pod_reasons
from components.ray_job.manifests import RUN_ANNOTATION, SUBMITTER_LABEL
from components.waiting import until
from core.body import ReadOnlyBody


class ConnectionFailedError(Exception):
    """The Job has failed, or is not there in time; the message has the reason."""


async def until_reached(
    cluster: Cluster,
    namespace: str,
    job: str,
    stage: Literal["running", "succeeded"],
    limit: int,
    show: Callable[[str], None],
) -> str:
    """Waits until the Job `job` has reached the stage. Returns the message of its pod, or `RUNNING` before its end.

    `limit`: seconds. `show`: called with the current state whenever it changes. Raises ConnectionFailedError.
    """

    def look() -> tuple[str | None, str]:
        try:
            live, pods = _look(cluster, namespace, job)
        except ClusterUnreachableError as error:
            return None, str(error)
        reached = _reached(live, pods, stage)
        if reached is None and (failure := failure_of(live, pods)):
            raise ConnectionFailedError(failure)
        return reached, state_of(pods)

    def late(state: str) -> ConnectionFailedError:
        return ConnectionFailedError(f"not there after {limit} s: {state}")

    return await until(look, limit, lambda state: show(f"waiting for Job {namespace}/{job}: {state}"), late)


def next_check(cluster: Cluster, namespace: str, job: str, described: str) -> str:
    """What identifies the check that these settings ask for: the live one, unless it was of others or has failed."""
    try:
        live = cluster.get("batch/v1", "jobs", namespace, job)
    except ClusterUnreachableError:
        return described
    run = str(((live or {}).get("metadata", {}).get("annotations") or {}).get(RUN_ANNOTATION, ""))
    if live is None or not run.startswith(described):
        return described
    return f"{described}-{live['metadata']['uid'][:8]}" if _condition(live, "Failed") else run


def reported(cluster: Cluster, namespace: str, job: str) -> str | None:
    """What the Job has reached: the message of its pod, or `RUNNING` before its end. None if it does not exist."""
    try:
        live, pods = _look(cluster, namespace, job)
    except ConnectionFailedError:
        return None
    return _reached(live, pods, "running")


def _look(cluster: Cluster, namespace: str, job: str) -> tuple[ReadOnlyBody, Sequence[ReadOnlyBody]]:
    live = cluster.get("batch/v1", "jobs", namespace, job)
    if live is None:
        raise ConnectionFailedError(f"Job {namespace}/{job} does not exist: it was deleted after its creation")
    listed = cluster.list("v1", "pods", namespace, labels=f"{SUBMITTER_LABEL}={job}") or ()
    pods = sorted(listed, key=lambda pod: pod["metadata"]["creationTimestamp"])
    return live, pods


def _reached(job: ReadOnlyBody, pods: Sequence[ReadOnlyBody], stage: str) -> str | None:
    if _condition(job, "Complete"):
        return (message_of(pods[-1]) if pods else None) or "SUCCEEDED"
    return "RUNNING" if stage == "running" and (job.get("status") or {}).get("ready") else None


def failure_of(job: ReadOnlyBody, pods: Sequence[ReadOnlyBody]) -> str | None:
    """Why the Job has failed; None if it has not."""
    failed = _condition(job, "Failed")
    if failed is None:
        return None
    message = message_of(pods[-1]) if pods else None
    return message or ": ".join(filter(None, [failed.get("reason"), failed.get("message")]))


def state_of(pods: Sequence[ReadOnlyBody]) -> str:
    """The state of the newest pod for people."""
    if not pods:
        return "it has no pod yet"
    status = pods[-1].get("status") or {}
    return "; ".join([str(status.get("phase") or "Pending"), *pod_reasons(dict(pods[-1]), {})])


def message_of(pod: ReadOnlyBody) -> str | None:
    """What the pod has reported at its end."""
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if message := (each.get("state", {}).get("terminated") or {}).get("message"):
            return str(message).strip()
    return None


def _condition(job: ReadOnlyBody, kind: str) -> ReadOnlyBody | None:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind and each["status"] == "True"), None)
