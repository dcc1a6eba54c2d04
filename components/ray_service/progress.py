"""Waits until a version of a RayService serves, or reports why it does not. Only reads."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from components.cluster import Cluster, ClusterUnreachableError
from components.ray_cluster.readiness import about, warnings, why_not_ready
from components.ray_service.applications import Application, applications, clusters_of, condition, is_serving
from components.waiting import look_at, until

_SETTLED_SECONDS = 10
"""Time before which a state may be that of the version before. KubeRay submits a changed Serve config after it has read
the status, sees the result when it reconciles again, every 2 s, and writes `observedGeneration` only when something
else changes (rayservice_controller.go: reconcileServe, ServiceDefaultRequeueDuration; utils/consistency.go)."""

_FAILED_FOR_GOOD = ("ValidationFailed", "InitializingTimeout")
"""Reasons of the condition Ready with which KubeRay does nothing more (rayservice_controller.go: Reconcile)."""


class ServiceFailedError(Exception):
    """The service does not serve; the message has the reason."""


async def until_serving(
    cluster: Cluster,
    namespace: str,
    name: str,
    operator_namespace: str,
    limit: int,
    show: Callable[[str], None],
) -> str:
    """Waits until the applied version serves. Returns its state for people.

    `limit`: seconds. `show`: called with the current state whenever it changes.
    Raises ServiceFailedError.
    """
    whose, begun = f"RayService {namespace}/{name}", time.monotonic()
    service: dict[str, Any] | None = None

    def look() -> tuple[str | None, str]:
        nonlocal service
        service, state = look_at(cluster, "rayservices", namespace, name, state_of)
        if service is None or time.monotonic() < begun + _SETTLED_SECONDS:
            return None, state
        if failure := failure_of(service):
            raise ServiceFailedError("\n  ".join([f"{whose} {failure[0]}", *failure[1:]]))
        return (state if is_updated(service) else None), state

    def late(state: str) -> ServiceFailedError:
        why = why_it_waits(cluster, service, operator_namespace)
        return ServiceFailedError("\n  ".join([f"{whose} does not serve this version after {limit} s: {state}", *why]))

    return await until(look, limit, lambda state: show(f"waiting for {whose}: {state}"), late)


def state_of(service: Mapping[str, Any]) -> str:
    """The state of a RayService for people: whether it serves, and what of it does not run."""
    status = service.get("status") or {}
    if not status:
        return "the operator has not seen it yet"
    waits = [line for each in applications(status) for line in each.problems]
    if "pending" in clusters_of(status):
        waits.insert(0, f"its next RayCluster {clusters_of(status)['pending']} is not ready")
    return "; ".join(["it serves" if is_serving(status) else "it does not serve", *waits])


def is_updated(service: Mapping[str, Any]) -> bool:
    """Whether it serves, all applications run, and no other RayCluster is about to replace that which serves."""
    status = service.get("status") or {}
    found = applications(status)
    return (
        is_serving(status) and "pending" not in clusters_of(status) and bool(found) and all(each.runs for each in found)
    )


def failure_of(service: Mapping[str, Any]) -> list[str]:
    """Why this version will not serve, a line for each reason; empty if it still may."""
    status = service.get("status") or {}
    ready = condition(status, "Ready")
    if ready and ready["status"] == "False" and ready["reason"] in _FAILED_FOR_GOOD:
        return [f"has failed: {ready['reason']}: {ready['message']}"]
    failed = [each for each in _of_this_version(status) if each.status == "DEPLOY_FAILED"]
    lines = [line for each in failed for line in each.problems]
    goes_on = "it still serves the version before" if is_serving(status) else "it serves nothing"
    return [f"has failed, and {goes_on}:", *lines] if lines else []


def _of_this_version(status: Mapping[str, Any]) -> list[Application]:
    """The applications of the version that was applied, as far as KubeRay has come to it.

    An incremental upgrade reports those of both RayClusters. After an edit in the middle of it KubeRay first goes back
    to the active one, which may be another version as well (rayservice_controller.go: reconcileRollbackState).
    """
    rolls_back = condition(status, "RollbackInProgress")
    if rolls_back and rolls_back["status"] == "True":
        return []
    role = "pending" if "pending" in clusters_of(status) else "active"
    return [each for each in applications(status) if each.role == role]


def why_it_waits(cluster: Cluster, service: Mapping[str, Any] | None, operator_namespace: str) -> list[str]:
    """One line for each reason: those of its RayClusters that are not ready, and KubeRay's warnings."""
    if service is None:
        return []
    namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
    found = clusters_of(service.get("status") or {})
    own = found.get("pending") or found.get("active")
    lines = why_not_ready(cluster, namespace, own, operator_namespace, queued=True) if own else []
    try:
        events = cluster.list("v1", "events", namespace) or ()
    except ClusterUnreachableError as error:
        return [*lines, str(error)]
    return [*lines, *warnings(about(events, {name}))]
