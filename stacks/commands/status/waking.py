"""Whether a RayCluster can be woken, and the request that wakes it. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stacks.commands.status.clusters import waits_in_kueue
from stacks.commands.status.targets import Target
from stacks.settings import StackSettings

FIELD_MANAGER = "ray-platform-wake"
"""Owner of `spec.suspend` of a RayCluster that was woken."""

WHO_WAKES = "A tenant's admins may wake its RayClusters; one that rests is also woken by a RayJob that selects it"
"""For those who must not."""


class NotWokenError(Exception):
    """The RayCluster is not woken; the message has the reason, and what to do."""


def wakes(target: Target, settings: StackSettings) -> dict[str, Any] | None:
    """The request to the API server (`Cluster.request`) that wakes a RayCluster; None if it is not suspended.

    Raises NotWokenError.
    """
    if target.kind != "RayCluster":
        raise NotWokenError(f"{target.title} is no RayCluster: only a RayCluster is woken")
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
