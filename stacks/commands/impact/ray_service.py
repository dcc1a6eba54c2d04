"""What an edit does to a RayService. Pure functions.

Follows the operator: ray-operator/controllers/ray/rayservice_controller.go at v1.6.2, shouldUpdateCluster and
shouldPrepareNewCluster.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kuberay.edits import Verdict, differences, normal
from kuberay.pods import hashed, least_running
from kuberay.ray_service import INCREMENTAL
from stacks.commands.impact.effects import Effect
from stacks.commands.impact.ray_cluster import listed
from stacks.commands.impact.ray_pods import Known, all_running, range_of

Body = Mapping[str, Any]

_CONTROLLER = "kuberay ray-operator/controllers/ray/rayservice_controller.go"
_CLUSTER = "rayClusterConfig"

_NEXT = "KubeRay applies it only to the next RayCluster; the running one stays as it is"

_IN_PLACE = {
    "serveConfigV2": "Serve applies it to the running RayCluster: replicas of changed deployments are replaced one "
    "after the other, and no pod ends",
    "upgradeStrategy": "applies to the next change of the RayCluster",
    "rayClusterDeletionDelaySeconds": "applies to the next RayCluster that is replaced",
    "excludeHeadPodFromServeSvc": "the head takes requests, or no longer takes any, within seconds",
}


def of_ray_service(before: Body, after: Body) -> Iterator[Effect]:
    """The effects of an edit."""
    was, will = before["spec"], after["spec"]
    replaced = _of_cluster(was[_CLUSTER], will)
    for field, text in _IN_PLACE.items():
        if was.get(field) != will.get(field) and not (field == "serveConfigV2" and replaced and replaced.made):
            yield Effect(Verdict.IN_PLACE, f"{field}: {text}", source=f"{_CONTROLLER}: reconcileServe")
    if replaced:
        yield replaced
    # These reach the RayCluster with any other change of it.
    for part in ("labels", "annotations") if replaced is None or replaced.verdict is Verdict.IGNORED else ():
        if (before["metadata"].get(part) or {}) != (after["metadata"].get(part) or {}):
            copied = "KubeRay copies them when it creates a RayCluster"
            yield Effect(Verdict.IGNORED, f"{part}: {_NEXT}", copied, source=f"{_CONTROLLER}: createRayClusterInstance")


def _of_cluster(was: Body, spec: Body) -> Effect | None:
    """What a change of its RayCluster does. `spec`: that of the RayService after it."""
    will, strategy = spec[_CLUSTER], spec.get("upgradeStrategy") or {}
    paths = list(differences(normal(was), normal(will)))
    if not paths:
        return None
    fields = listed(paths)
    if bool(was.get("suspend")) != bool(will.get("suspend")):
        return _suspended(was, will)
    if hashed(was) == hashed(will):
        return Effect(
            Verdict.IGNORED,
            f"{fields}: {_NEXT}",
            "KubeRay does not compare numbers of workers and tolerations of a service's RayCluster",
            "for the running one, change the RayCluster itself with kubectl; or change a label of the cluster in the "
            "same edit, so that it is replaced",
            "kuberay ray-operator/controllers/ray/utils/util.go: GenerateHashWithoutReplicasAndWorkersToDelete",
        )
    groups = len(was.get("workerGroupSpecs") or ())
    if hashed(was) == hashed({**will, "workerGroupSpecs": (will.get("workerGroupSpecs") or [])[:groups]}):
        return Effect(
            Verdict.IN_PLACE,
            f"{fields}: the worker groups are added to the running RayCluster; numbers of workers are those of the "
            "stack file again",
            "KubeRay writes the whole spec to the RayCluster",
            source=f"{_CONTROLLER}: shouldUpdateCluster",
        )
    if strategy.get("type") == "None":
        return Effect(
            Verdict.IGNORED,
            f"{fields}: {_NEXT}",
            "upgradeStrategy is None",
            "set upgradeStrategy to NewCluster in the same edit, if there is room for a second RayCluster",
            f"{_CONTROLLER}: isZeroDowntimeUpgradeEnabled",
        )
    return _replaced(fields, was, will, strategy)


def _replaced(fields: str, was: Body, will: Body, strategy: Body) -> Effect:
    ended, least = all_running(Known({"metadata": {}, "spec": was})), least_running(will)
    made = range_of(sum(least.values()), sum(least.values()))
    if strategy.get("type") == INCREMENTAL:
        moves = f"requests move to it in steps of {strategy['clusterUpgradeOptions']['stepSizePercent']} %"
    else:
        moves = "all requests go to it once its applications run"
    return Effect(
        Verdict.ROLLING,
        f"{fields}: a second RayCluster starts beside the first, with {made.pods()} at first; {moves}; then the first "
        f"is deleted, with its {ended.pods()}",
        "KubeRay replaces the RayCluster of a service when its spec changes; if the second one never serves, the first "
        "stays",
        "leave room for both, in nodes, quota and queue",
        f"{_CONTROLLER}: shouldPrepareNewCluster",
        ended=ended,
        made=made,
    )


def _suspended(was: Body, will: Body) -> Effect:
    if will.get("suspend"):
        ended = all_running(Known({"metadata": {}, "spec": was}))
        text = f"suspend: {ended.pods()} end, and nothing serves"
        return Effect(Verdict.DELETES, text, source=f"{_CONTROLLER}: shouldUpdateCluster", ended=ended)
    return Effect(Verdict.IN_PLACE, "suspend: the pods are created again", source=f"{_CONTROLLER}: shouldUpdateCluster")
