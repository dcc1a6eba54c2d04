"""Waits until a RayJob runs or has succeeded, or reports why it does not. Only reads."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import kubernetes

from ..cluster import ClusterUnreachableError, connect, read
from ..ray_cluster.diagnosis import pod_reasons
from ..ray_cluster.readiness import why_not_ready
from .manifests import SUBMITTER_LABEL

Stage = Literal["running", "succeeded"]

ENDED = ("Complete", "Failed", "ValidationFailed")
"""`jobDeploymentStatus` of a RayJob that does nothing more (ray-operator/apis/ray/v1/rayjob_types.go)."""

_PAUSE_SECONDS = 1.0


class JobFailedError(Exception):
    """The job has failed, or is not there in time; the message has the reason."""


async def until_reached(
    context: str | None,
    namespace: str,
    name: str,
    stage: Stage,
    operator_namespace: str,
    limit: int,
    show: Callable[[str], None],
    queued: bool = False,
) -> str:
    """Waits until the job has reached the stage. Returns its status in Ray's words: `RUNNING`, `SUCCEEDED`.

    `limit`: seconds. `show`: called with the current state whenever it changes. `queued`: whether Kueue may suspend it.
    Raises JobFailedError.
    """
    deadline = time.monotonic() + limit
    shown = ""
    while True:
        job, state = await asyncio.to_thread(_look, context, namespace, name)
        if job and (reached := _reached(job, stage)):
            return reached
        if job and (failure := failure_of(job)):
            raise JobFailedError(f"RayJob {namespace}/{name} {failure}")
        if time.monotonic() > deadline:
            reasons = await asyncio.to_thread(why_it_waits, context, job, operator_namespace, queued)
            what = "does not run" if stage == "running" else "has not ended"
            raise JobFailedError("\n  ".join([f"RayJob {namespace}/{name} {what} after {limit} s: {state}", *reasons]))
        if state != shown:
            show(f"waiting for RayJob {namespace}/{name}: {state}")
            shown = state
        await asyncio.sleep(_PAUSE_SECONDS)


def _look(context: str | None, namespace: str, name: str) -> tuple[dict[str, Any] | None, str]:
    """The RayJob and its state for people. An API server that does not answer is asked again later."""
    try:
        client = kubernetes.client.CustomObjectsApi(connect(context))
        job = read(client.get_namespaced_custom_object, "ray.io", "v1", namespace, "rayjobs", name)
    except ClusterUnreachableError as error:
        return None, str(error)
    return job, state_of(job) if job else "it does not exist: it was deleted after its creation"


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
    if of_ray == "SUCCEEDED" or (stage == "running" and of_ray == "RUNNING"):
        return of_ray
    return None


def why_it_waits(
    context: str | None, job: Mapping[str, Any] | None, operator_namespace: str, queued: bool
) -> list[str]:
    """One line for each reason: those of the pod that submits it, or before that those of its cluster."""
    status = (job or {}).get("status") or {}
    cluster = status.get("rayClusterName")
    if job is None or not cluster:
        return []
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    if status.get("jobDeploymentStatus") != "Running":
        return why_not_ready(context, namespace, cluster, operator_namespace, queued)
    return [*_of_submitter(context, namespace, name), *([str(status["message"])] if status.get("message") else [])]


def _of_submitter(context: str | None, namespace: str, name: str) -> list[str]:
    try:
        core = kubernetes.client.CoreV1Api(connect(context))
        pods = read(core.list_namespaced_pod, namespace, label_selector=f"{SUBMITTER_LABEL}={name}") or {}
    except ClusterUnreachableError as error:
        return [str(error)]
    return [line for pod in pods.get("items", ()) for line in pod_reasons(pod, {})]
