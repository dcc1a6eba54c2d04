"""Waits until a RayCluster is ready, or reports why it is not. Only reads.

The provider's `pulumi.com/waitFor` does not work here: it waits for `status.observedGeneration`, which KubeRay writes
only when something else in the status changes (ray-operator/controllers/ray/utils/consistency.go). So after most edits
it would wait until its timeout and fail.
"""

from collections.abc import Callable, Mapping
from typing import Any

from components.cluster import Body, Cluster, ClusterUnreachableError, ForbiddenError
from components.ray_cluster.diagnosis import Evidence, about, is_ready, reasons, starting
from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_cluster.workload import why_it_waits
from components.waiting import until

OPERATOR_PODS = "app.kubernetes.io/component=kuberay-operator"
"""Selects the operator's pods (ray-operator/config/manager/manager.yaml)."""


class NotReadyError(Exception):
    """The RayCluster is not ready in time; the message has the reason."""


async def until_ready(
    cluster: Cluster,
    namespace: str,
    name: str,
    operator_namespace: str,
    limit: int,
    show: Callable[[str], None],
    queued: bool = False,
) -> dict[str, Any]:
    """Waits until the cluster is ready, or suspended if its spec sets `suspend`. Returns its `status`.

    `limit`: seconds. `show`: called with the current reason to wait, whenever it changes. `queued`: see is_ready.
    Raises NotReadyError.
    """

    def look() -> tuple[dict[str, Any] | None, str]:
        own, waiting = _look(cluster, namespace, name, queued)
        return (own["status"] if own and is_ready(own, queued) else None), waiting

    def late(_: str) -> NotReadyError:
        why = why_not_ready(cluster, namespace, name, operator_namespace, queued)
        return NotReadyError("\n  ".join([f"RayCluster {namespace}/{name} is not ready after {limit} s:", *why]))

    return await until(look, limit, show, late)


def _look(cluster: Cluster, namespace: str, name: str, queued: bool) -> tuple[dict[str, Any] | None, str]:
    """The cluster, and the reason to wait. An API server that does not answer is asked again later."""
    try:
        own = cluster.get("ray.io/v1", "rayclusters", namespace, name)
    except ClusterUnreachableError as error:
        return None, str(error)
    if queued and own and own["spec"].get("suspend"):
        why = why_it_waits(cluster, own)
        return own, f"RayCluster {namespace}/{name} waits in its queue{f': {why}' if why else ''}"
    state = ((own or {}).get("status") or {}).get("state")
    return own, f"waiting for RayCluster {namespace}/{name}, now {state or 'without a state'}"


def status_summary(status: Mapping[str, Any] | None) -> dict[str, Any]:
    """State, head, workers and conditions from a RayCluster's `status`; None for fields that are not set.

    KubeRay omits numbers of workers that are 0.
    """
    known = status or {}
    head = known.get("head") or {}
    workers = {
        name: int(known.get(f"{name}WorkerReplicas") or 0) for name in ("desired", "available", "ready", "min", "max")
    }
    return {
        "state": known.get("state"),
        "head": {"pod": head.get("podName"), "service": head.get("serviceName")},
        "workers": workers,
        "conditions": [
            {key: condition.get(key) for key in ("type", "status", "reason", "message")}
            for condition in known.get("conditions") or []
        ],
    }


def why_not_ready(
    cluster: Cluster, namespace: str, name: str, operator_namespace: str, queued: bool = False
) -> list[str]:
    """One line for each reason, the most specific first. An unreachable API server is itself the reason.

    `queued`: see is_ready.
    """
    try:
        return reasons(_read(cluster, namespace, name, operator_namespace, queued))
    except ClusterUnreachableError as error:
        return [str(error)]


def _read(cluster: Cluster, namespace: str, name: str, operator_namespace: str, queued: bool) -> Evidence:
    own = cluster.get("ray.io/v1", "rayclusters", namespace, name)
    pods = cluster.list("v1", "pods", namespace, labels=f"{CLUSTER_LABEL}={name}") or ()
    events = cluster.list("v1", "events", namespace) or ()
    names = {name, *(pod["metadata"]["name"] for pod in pods)}
    logs = {each: _log(cluster, namespace, *each) for pod in pods for each in starting(pod)}
    waits = why_it_waits(cluster, own) if queued and own and own["spec"].get("suspend") else None
    return Evidence(own, pods, about(events, names), _operator_pods(cluster, operator_namespace), logs, waits)


def _log(cluster: Cluster, namespace: str, pod: str, container: str) -> str:
    """The end of a container's log; empty if it cannot be read, for example without the right to."""
    try:
        text = b"".join(cluster.log(namespace, pod, container, tail=20))
    except ClusterUnreachableError:
        return ""
    return text.decode(errors="replace")


def _operator_pods(cluster: Cluster, namespace: str) -> tuple[Body, ...] | None:
    """The operator's pods; None if this account must not read them, as with rights in one namespace only."""
    try:
        return cluster.list("v1", "pods", namespace, labels=OPERATOR_PODS) or ()
    except ForbiddenError:
        return None
