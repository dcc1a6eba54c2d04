"""Why a queue keeps a RayCluster or RayJob waiting, from its Workload of Kueue or its PodGroup of Volcano. Only
reads."""

from collections.abc import Iterable, Mapping
from typing import Any

from components.cluster import Cluster, ClusterUnreachableError
from components.queues.kueue import API_VERSION

_OWNER_LABEL = "kueue.x-k8s.io/job-uid"
"""Label of a Workload with the UID of its RayCluster (kueue, pkg/controller/constants/constants.go)."""

_CONDITIONS = ("QuotaReserved", "Admitted")
"""Conditions of an admitted RayCluster, in the order in which they become true (kueue, apis/kueue/v1beta2)."""


def why_it_waits(cluster: Cluster, own: Mapping[str, Any]) -> str | None:
    """The reason, as Kueue reports it; None if there is none, or it cannot be read. `own`: the RayCluster."""
    metadata = own["metadata"]
    selected = f"{_OWNER_LABEL}={metadata['uid']}"
    try:
        listed = cluster.list(API_VERSION, "workloads", metadata["namespace"], labels=selected)
    except ClusterUnreachableError:
        # This account may have no right to read Workloads. The reason is not worth a failed update.
        return None
    return reason(listed or ())


def reason(workloads: Iterable[Mapping[str, Any]]) -> str | None:
    """The reason in the newest Workload of one RayCluster."""
    newest = max(workloads, key=lambda each: str(each["metadata"].get("creationTimestamp", "")), default=None)
    conditions = {each["type"]: each for each in ((newest or {}).get("status") or {}).get("conditions", ())}
    for kind in _CONDITIONS:
        condition = conditions.get(kind)
        if condition and condition["status"] != "True":
            return str(condition.get("message") or condition["reason"])
    return None


_WAITING_PHASES = {
    "Pending": "Volcano has not admitted it to the queue",
    "Inqueue": "its queue has admitted it, and its pods have no nodes yet",
}
"""Phases of a PodGroup whose gang has not started (volcano, apis/pkg/apis/scheduling/v1beta1/types.go), and the reason
if Volcano reports none."""


def gang_waits(pod_group: Mapping[str, Any]) -> bool:
    """Whether Volcano has not started the gang."""
    return _phase(pod_group) in _WAITING_PHASES


def gang_reason(pod_groups: Iterable[Mapping[str, Any]]) -> str | None:
    """The reason in the PodGroups of one RayCluster or RayJob that have not started; None if all have.

    The condition stays after the gang has started (volcano, pkg/scheduler/plugins/gang/gang.go), so the phase counts as
    well.
    """
    for pod_group in filter(gang_waits, pod_groups):
        conditions = (pod_group.get("status") or {}).get("conditions") or ()
        messages = (each.get("message") for each in conditions if each["type"] == "Unschedulable")
        return next(messages, None) or _WAITING_PHASES[_phase(pod_group)]
    return None


def _phase(pod_group: Mapping[str, Any]) -> str:
    return str((pod_group.get("status") or {}).get("phase") or "Pending")
