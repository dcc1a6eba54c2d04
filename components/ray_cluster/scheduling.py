"""Labels and an annotation of a RayCluster for the batch scheduler. Pure functions.

A RayJob has the same. A RayService copies its own to its RayCluster.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.kueue.settings import KueueSettings
from components.queues.settings import RESERVED, Backend
from components.queues.volcano import KUEUE_QUEUE_LABEL, QUEUE_LABEL
from components.ray_cluster.settings import RayClusterSettings
from core.problems import Problem

PRIORITY_LABEL = "ray.io/priority-class-name"
TOPOLOGY_MODE_LABEL = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER_LABEL = "volcano.sh/network-topology-highest-tier-allowed"
"""KubeRay creates the PodGroup from these
(ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go)."""

KUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
ELASTIC_ANNOTATION = "kueue.x-k8s.io/elastic-job"
"""Labels and annotations that Kueue reads (kueue, pkg/controller/constants/constants.go and
pkg/workloadslicing/workloadslicing.go)."""

PREEMPTABLE = "volcano.sh/preemptable"
"""Annotation of a pod: whether Volcano may evict it for other pods (volcano, pkg/scheduler/api/pod_info.go:
GetPodPreemptable)."""

LABELS_OF_A_NEW_CLUSTER = (TOPOLOGY_MODE_LABEL, TOPOLOGY_TIER_LABEL, KUEUE_QUEUE_LABEL)
"""Labels whose change needs a new RayCluster. KubeRay does not change the topology of an existing PodGroup, and running
pods would stay on their nodes. Kueue refuses a change of the queue (kueue, pkg/controller/jobframework/ validation.go:
validateUpdateForQueueName)."""

SETTINGS_BY_LABEL = {
    QUEUE_LABEL: "queue",
    KUEUE_QUEUE_LABEL: "queue",
    PRIORITY_LABEL: "priorityClass",
    KUEUE_PRIORITY_LABEL: "priorityClass",
    TOPOLOGY_MODE_LABEL: "networkTopology",
    TOPOLOGY_TIER_LABEL: "networkTopology",
}
"""The settings that determine a label, if the stack has a scheduler."""


@dataclass(frozen=True)
class Scheduling:
    """The scheduler and the queue of a RayCluster."""

    backend: Backend | None = None
    """None: Kubernetes' own scheduler, or one that the stack file does not name."""

    queue: str | None = None
    """Queue that it waits in; None: the scheduler's default one."""


NO_SCHEDULING = Scheduling()


def labels(settings: RayClusterSettings, scheduling: Scheduling) -> dict[str, str]:
    """The labels of the RayCluster."""
    topology = settings.network_topology
    tier = topology.highest_tier_allowed if topology else None
    values: dict[str, str | None] = {}
    if scheduling.backend == "volcano":
        values = {
            QUEUE_LABEL: scheduling.queue,
            PRIORITY_LABEL: settings.priority_class,
            TOPOLOGY_MODE_LABEL: topology.mode if topology else None,
            TOPOLOGY_TIER_LABEL: None if tier is None else str(tier),
        }
    elif scheduling.backend == "kueue":
        values = {KUEUE_QUEUE_LABEL: scheduling.queue, KUEUE_PRIORITY_LABEL: settings.priority_class}
    return {label: value for label, value in values.items() if value is not None}


def annotations(settings: RayClusterSettings, scheduling: Scheduling) -> dict[str, str]:
    """The annotations of the RayCluster. With Kueue only RayClusters with this annotation can scale."""
    elastic = scheduling.backend == "kueue" and scheduling.queue is not None and settings.scales
    return {ELASTIC_ANNOTATION: "true"} if elastic else {}


def retained_head(settings: RayClusterSettings, scheduling: Scheduling, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with a head that Volcano does not evict for another queue, unless its template sets the annotation.

    Volcano keeps as many pods as the gang needs, in any choice, and considers one node at a time (volcano,
    pkg/scheduler/plugins/gang/gang.go and actions/reclaim/reclaim.go). If a cluster has more workers than its gang
    needs, Volcano could evict a head that is alone on its node, and that ends all workers.
    """
    if scheduling.backend != "volcano" or settings.pod_defaults == "none":
        return dict(spec)
    head = spec["headGroupSpec"]
    template = head["template"]
    metadata = template.get("metadata") or {}
    annotations = {PREEMPTABLE: "false", **(metadata.get("annotations") or {})}
    retained = {**template, "metadata": {**metadata, "annotations": annotations}}
    return {**spec, "headGroupSpec": {**head, "template": retained}}


def with_counted_replicas(scheduling: Scheduling, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with `replicas` of at least `minReplicas`, if Kueue admits the RayCluster.

    KubeRay starts at least `minReplicas`. Kueue counts `replicas` (kueue, pkg/controller/jobs/raycluster/
    raycluster_controller.go: PodSets), and would admit a RayCluster that does not fit into its queue.
    """
    if scheduling.backend != "kueue" or scheduling.queue is None:
        return dict(spec)
    groups = [
        {**group, "replicas": max(group.get("replicas") or 0, group.get("minReplicas") or 0)}
        for group in spec.get("workerGroupSpecs") or ()
    ]
    return {**spec, "workerGroupSpecs": groups}


def settings_of_labels(labels: Mapping[str, str]) -> dict[str, Any]:
    """The stack file settings for the labels of a RayCluster; values without a setting are omitted."""
    mode, tier = labels.get(TOPOLOGY_MODE_LABEL), labels.get(TOPOLOGY_TIER_LABEL, "")
    allowed = {"highestTierAllowed": int(tier)} if mode == "hard" and tier.isascii() and tier.isdigit() else {}
    queue = labels.get(QUEUE_LABEL) or labels.get(KUEUE_QUEUE_LABEL)
    values = {
        "queue": None if queue in RESERVED else queue,
        "priorityClass": labels.get(PRIORITY_LABEL) or labels.get(KUEUE_PRIORITY_LABEL),
        "networkTopology": {"mode": mode, **allowed} if mode in ("hard", "soft") else None,
    }
    return {key: value for key, value in values.items() if value}


_MOST_GROUPS = 7
"""A Workload of Kueue has 8 pod sets, one of which is the head."""


def unguarded_gang(settings: RayClusterSettings, body: Mapping[str, Any]) -> Iterator[Problem]:
    """Worker groups that can scale although `gang` is `all`; the path is in the settings.

    KubeRay's gang is the head and minReplicas of each group. Raising minReplicas to maxReplicas implicitly would start
    every worker of every size at once. That is seldom intended, so the settings have to do it.
    """
    if settings.gang != "all" or not body["spec"].get("enableInTreeAutoscaling"):
        return
    changing = [
        f"{group['groupName']} {group.get('minReplicas') or 0} to {'any' if most is None else most}"
        for group in body["spec"].get("workerGroupSpecs") or ()
        if (most := group.get("maxReplicas")) != (group.get("minReplicas") or 0)
    ]
    if changing:
        message = (
            f"gang all starts every worker together, and the autoscaler adds some later ({', '.join(changing)}): set "
            "minReplicas and maxReplicas of each group to the same number, or autoscaling to false and replicas"
        )
        yield Problem(("gang",), "all", message, "gang-in-part")


def not_with_kueue(
    settings: RayClusterSettings, scheduling: Scheduling, kueue: KueueSettings, body: Mapping[str, Any]
) -> Iterator[Problem]:
    """Settings that Kueue's webhook refuses (kueue, pkg/controller/jobs/raycluster/raycluster_webhook.go:
    validateCreate), and those that Kueue does not have; paths are in the settings.
    """
    if settings.network_topology:
        yield _refused("networkTopology", "is only for Volcano: remove it, or set scheduler to volcano")
    if scheduling.queue is None:
        return
    if settings.scales and not kueue.elastic_jobs:
        yield _refused(
            "autoscaling",
            "Kueue refuses a RayCluster that scales, unless its feature gate ElasticJobsViaWorkloadSlices is on: set "
            "autoscaling to false, or scheduler.kueue.elasticJobs to true where it is",
        )
    if settings.idle_termination_options:
        yield _refused(
            "idleTerminationOptions",
            "Kueue decides whether a RayCluster in a queue is suspended: remove it, or use a job, whose cluster ends",
        )
    names = [group["groupName"] for group in body["spec"].get("workerGroupSpecs") or ()]
    if len(names) > _MOST_GROUPS:
        yield _refused(
            "workers", f"Kueue supports at most {_MOST_GROUPS} worker groups, and there are {len(names)}: use fewer"
        )
    if "head" in names:
        yield _refused("workerGroups", "Kueue calls the head's pod 'head': give the worker group another name")


def _refused(key: str, message: str) -> Problem:
    return Problem((key,), None, message, "not-with-kueue")
