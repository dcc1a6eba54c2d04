"""What a batch scheduler cannot do of a RayCluster, or refuses."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.problems import Problem

from ..kueue.settings import KueueSettings
from .scheduling import Scheduling
from .settings import RayClusterSettings

_MOST_GROUPS = 7
"""A Workload of Kueue has 8 pod sets, one of which is the head."""


def gang_in_part(settings: RayClusterSettings, body: Mapping[str, Any]) -> Iterator[Problem]:
    """Workers that the autoscaler adds later, where the gang is to be all of them; the path is in the settings.

    KubeRay's gang is the head and minReplicas of each group. That these are raised to maxReplicas unsaid would start
    every worker of every size at once, which is seldom meant, so it has to be said.
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
    """What Kueue's webhook refuses (kueue, pkg/controller/jobs/raycluster/raycluster_webhook.go: validateCreate), and
    what it does not know; paths are in the settings.
    """
    if settings.network_topology:
        yield _refused("networkTopology", "is Volcano's: remove it, or set scheduler to volcano")
    if scheduling.queue is None:
        return
    if settings.scales and not kueue.elastic_jobs:
        yield _refused(
            "autoscaling",
            "Kueue refuses a RayCluster that scales, unless its feature gate ElasticJobsViaWorkloadSlices is on: set "
            "autoscaling to false, or scheduler.kueue.elasticJobs to true where it is",
        )
    names = [group["groupName"] for group in body["spec"].get("workerGroupSpecs") or ()]
    if len(names) > _MOST_GROUPS:
        yield _refused(
            "workers", f"Kueue takes at most {_MOST_GROUPS} worker groups, and there are {len(names)}: use fewer"
        )
    if "head" in names:
        yield _refused("workerGroups", "Kueue calls the head's pod 'head': give the worker group another name")


def _refused(key: str, message: str) -> Problem:
    return Problem((key,), None, message, "not-with-kueue")
