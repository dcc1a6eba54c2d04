"""Waits until a RayJob runs or has succeeded, or reports why it does not. Only reads."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from components.cluster import Cluster, ClusterUnreachableError
from components.ray_cluster.readiness import pod_reasons, why_not_ready
from components.ray_job.manifests import SUBMITTER_LABEL
from components.waiting import GONE, look_at, until

Stage = Literal["running", "succeeded"]

ENDED = ("Complete", "Failed", "ValidationFailed")
"""`jobDeploymentStatus` of a RayJob that does nothing more (ray-operator/apis/ray/v1/rayjob_types.go)."""


_OF_BEFORE = ("Suspending", "Suspended", "Retrying")
"""`jobDeploymentStatus` while KubeRay deletes the cluster of an earlier attempt. Until it has, `jobStatus` is that of
this attempt (rayjob_controller.go: Reconcile)."""


class JobFailedError(Exception):
    """The job has failed, or is not there in time; the message has the reason."""


async def until_reached(
    cluster: Cluster,
    namespace: str,
    name: str,
    stage: Stage,
    operator_namespace: str,
    limit: int,
    show: Callable[[str], None],
    queued: bool = False,
    ends: bool = False,
) -> str:
    """Waits until the job has reached the stage. Returns its status in Ray's words: `RUNNING`, `SUCCEEDED`.

    `limit`: seconds. `show`: called with the current state whenever it changes. `queued`: whether Kueue may suspend it.
    `ends`: as in `look_at`, for a wait that may outlast all tokens.
    Raises JobFailedError; with `ends` UnauthorizedError.
    """
    about = f"RayJob {namespace}/{name}"
    job: dict[str, Any] | None = None

    def look() -> tuple[str | None, str]:
        nonlocal job
        job, state = look_at(cluster, "rayjobs", namespace, name, state_of, ends)
        if state == GONE:
            raise JobFailedError(f"{about}: {state}")
        reached = _reached(job, stage) if job else None
        if job and reached is None and (failure := failure_of(job)):
            raise JobFailedError(f"{about} {failure}")
        return reached, state

    def late(state: str) -> JobFailedError:
        what = "does not run" if stage == "running" else "has not ended"
        reasons = why_it_waits(cluster, job, operator_namespace, queued)
        return JobFailedError("\n  ".join([f"{about} {what} after {limit} s: {state}", *reasons]))

    return await until(look, limit, lambda state: show(f"waiting for {about}: {state}"), late)


def state_of(job: Mapping[str, Any]) -> str:
    """The state of a RayJob for people: KubeRay's status, and Ray's once Ray has the job."""
    status = job.get("status") or {}
    deployment, of_ray = status.get("jobDeploymentStatus") or "", status.get("jobStatus") or ""
    if not deployment:
        return "the operator has not seen it yet"
    return f"{deployment}, in Ray {of_ray}" if of_ray else deployment


def failure_of(job: Mapping[str, Any]) -> str | None:
    """Why the job can no longer succeed, as KubeRay reports it; None if it still can, or has."""
    status = job.get("status") or {}
    deployment, of_ray = status.get("jobDeploymentStatus"), status.get("jobStatus")
    if deployment not in ENDED or of_ray == "SUCCEEDED":
        return None
    reason, message = status.get("reason") or of_ray or deployment, (status.get("message") or "").strip()
    return f"has failed: {reason}{f': {message}' if message else ''}"


def _reached(job: Mapping[str, Any], stage: Stage) -> str | None:
    status = job.get("status") or {}
    of_ray = str(status.get("jobStatus") or "")
    if status.get("jobDeploymentStatus") in _OF_BEFORE:
        return None
    if of_ray == "SUCCEEDED" or (stage == "running" and of_ray == "RUNNING"):
        return of_ray
    return None


def why_it_waits(cluster: Cluster, job: Mapping[str, Any] | None, operator_namespace: str, queued: bool) -> list[str]:
    """One line for each reason: those of the pod that submits it, or before that those of its cluster."""
    status = (job or {}).get("status") or {}
    own = status.get("rayClusterName")
    if job is None or not own:
        return []
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    if status.get("jobDeploymentStatus") != "Running":
        return why_not_ready(cluster, namespace, own, operator_namespace, queued)
    return [*_of_submitter(cluster, namespace, name), *([str(status["message"])] if status.get("message") else [])]


def _of_submitter(cluster: Cluster, namespace: str, name: str) -> list[str]:
    try:
        pods = cluster.list("v1", "pods", namespace, labels=f"{SUBMITTER_LABEL}={name}") or ()
    except ClusterUnreachableError as error:
        return [str(error)]
    return [line for pod in pods for line in pod_reasons(pod, {})]
