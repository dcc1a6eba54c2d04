"""What tells a batch scheduler of a RayCluster: labels, and an annotation. Pure functions.

A RayJob has the same, and a RayService hands its own on to the RayCluster that it makes.
"""

from dataclasses import dataclass

from ..queues.admission import QUEUE_LABEL
from ..queues.settings import Backend
from .settings import RayClusterSettings

PRIORITY_LABEL = "ray.io/priority-class-name"
TOPOLOGY_MODE_LABEL = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER_LABEL = "volcano.sh/network-topology-highest-tier-allowed"
"""KubeRay makes the PodGroup of these (ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go)."""

TOPOLOGY_LABELS = (TOPOLOGY_MODE_LABEL, TOPOLOGY_TIER_LABEL)

KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
ELASTIC_ANNOTATION = "kueue.x-k8s.io/elastic-job"
"""What Kueue reads (kueue, pkg/controller/constants/constants.go and pkg/workloadslicing/workloadslicing.go)."""

SETTINGS_BY_LABEL = {
    QUEUE_LABEL: "queue",
    KUEUE_QUEUE_LABEL: "queue",
    PRIORITY_LABEL: "priorityClass",
    KUEUE_PRIORITY_LABEL: "priorityClass",
    TOPOLOGY_MODE_LABEL: "networkTopology",
    TOPOLOGY_TIER_LABEL: "networkTopology",
}
"""The settings that decide a label, where the stack has a scheduler."""


@dataclass(frozen=True)
class Scheduling:
    """What schedules a RayCluster."""

    backend: Backend | None = None
    """None: Kubernetes' own scheduler, or one that the stack knows nothing of."""

    queue: str | None = None
    """Queue that it waits in; None: the scheduler's default one."""


NO_SCHEDULING = Scheduling()


def labels(settings: RayClusterSettings, scheduling: Scheduling) -> dict[str, str]:
    """The labels of the RayCluster."""
    topology = settings.network_topology
    tier = topology.highest_tier_allowed if topology else None
    said: dict[str, str | None] = {}
    if scheduling.backend == "volcano":
        said = {
            QUEUE_LABEL: scheduling.queue,
            PRIORITY_LABEL: settings.priority_class,
            TOPOLOGY_MODE_LABEL: topology.mode if topology else None,
            TOPOLOGY_TIER_LABEL: None if tier is None else str(tier),
        }
    elif scheduling.backend == "kueue":
        said = {KUEUE_QUEUE_LABEL: scheduling.queue, KUEUE_PRIORITY_LABEL: settings.priority_class}
    return {label: value for label, value in said.items() if value is not None}


def annotations(settings: RayClusterSettings, scheduling: Scheduling) -> dict[str, str]:
    """The annotations of the RayCluster. Kueue lets only those scale that say so."""
    elastic = scheduling.backend == "kueue" and scheduling.queue is not None and settings.scales
    return {ELASTIC_ANNOTATION: "true"} if elastic else {}
