"""Waits until a RayCluster is ready, or says why it is not. Only reads.

Not left to the provider's `pulumi.com/waitFor`: that heeds `status.observedGeneration`, which KubeRay writes only when
something else of the status changes (ray-operator/controllers/ray/utils/consistency.go), so after most edits of a
cluster that stays as it is, it would wait for its whole time limit and fail.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import kubernetes

from ..cluster import ClusterUnreachableError, connect, read
from .diagnosis import is_ready, why_not_ready
from .workload import why_it_waits

_PAUSE_SECONDS = 1.0


class NotReadyError(Exception):
    """The RayCluster is not ready in time; the text says why."""


async def until_ready(
    context: str | None,
    namespace: str,
    name: str,
    operator_namespace: str,
    limit: int,
    show: Callable[[str], None],
    queued: bool = False,
) -> dict[str, Any]:
    """Wait until the cluster is ready, or suspended where its spec says so. Returns its `status`.

    `limit`: seconds. `show`: called with what is waited for, whenever that changes. `queued`: see is_ready.
    Raises NotReadyError.
    """
    deadline = time.monotonic() + limit
    shown = ""
    while True:
        cluster, waiting = await asyncio.to_thread(_look, context, namespace, name, queued)
        if cluster and is_ready(cluster, queued):
            status: dict[str, Any] = cluster["status"]
            return status
        if time.monotonic() > deadline:
            reasons = await asyncio.to_thread(why_not_ready, context, namespace, name, operator_namespace, queued)
            said = "\n  ".join([f"RayCluster {namespace}/{name} is not ready after {limit} s:", *reasons])
            raise NotReadyError(said)
        if waiting != shown:
            show(waiting)
            shown = waiting
        await asyncio.sleep(_PAUSE_SECONDS)


def _look(context: str | None, namespace: str, name: str, queued: bool) -> tuple[dict[str, Any] | None, str]:
    """The cluster, and what it is waited for. An API server that does not answer may do so again."""
    try:
        client = kubernetes.client.CustomObjectsApi(connect(context))
        cluster = read(client.get_namespaced_custom_object, "ray.io", "v1", namespace, "rayclusters", name)
    except ClusterUnreachableError as error:
        return None, str(error)
    if queued and cluster and cluster["spec"].get("suspend"):
        why = why_it_waits(context, cluster)
        return cluster, f"RayCluster {namespace}/{name} waits in its queue{f': {why}' if why else ''}"
    state = ((cluster or {}).get("status") or {}).get("state")
    return cluster, f"waiting for RayCluster {namespace}/{name}, now {state or 'without a state'}"
