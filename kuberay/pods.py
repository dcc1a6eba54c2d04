"""Which pods of a RayCluster KubeRay deletes and creates after an edit. Pure functions.

Follows the operator: ray-operator/controllers/ray/raycluster_controller.go, reconcilePods and
reconcileMultiHostWorkerGroup, at v1.6.2 with the feature gates that are on by default.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kuberay.edits import WORKER_GROUP_DEFAULTS, normal
from kuberay.rules import HEAD_GROUP

Spec = Mapping[str, Any]

Counts = Mapping[str, int]
"""Number of pods by group name, as in label `ray.io/group`."""

UNLIMITED = WORKER_GROUP_DEFAULTS["maxReplicas"]

_UNHASHED = ("replicas", "minReplicas", "maxReplicas")
_UNHASHED_OF_PODS = ("tolerations", "schedulingGates")
"""Fields that KubeRay does not compare (ray-operator/controllers/ray/utils/util.go:
GenerateHashWithoutReplicasAndWorkersToDelete)."""


@dataclass(frozen=True)
class PodChange:
    """Changes of a RayCluster's pods, by group; groups without a change are missing."""

    deleted: Counts = field(default_factory=dict)
    """Deleted by KubeRay, at once."""

    created: Counts = field(default_factory=dict)

    orphaned: Counts = field(default_factory=dict)
    """Pods of a removed group, or pods that belong to no replica any more: they keep running."""

    recreated: bool = False
    """Whether `upgradeStrategy: Recreate` deletes all pods."""


def change_of_pods(before: Spec, after: Spec, running: Counts) -> PodChange:
    """What the operator does when the spec changes from `before` to `after` while the pods `running` run."""
    if after.get("suspend"):
        return PodChange(deleted=_some(running))
    desired_pods = {HEAD_GROUP: 1, **{name: desired(group) for name, group in groups_of(after).items()}}
    if running and recreates(before, after):
        return PodChange(deleted=_some(running), created=_some(desired_pods), recreated=True)
    was, scales = groups_of(before), bool(after.get("enableInTreeAutoscaling"))
    changes = {
        name: _of_group(was.get(name, group), group, running.get(name, 0), scales)
        for name, group in groups_of(after).items()
    }
    removed = {name: pods for name, pods in running.items() if name not in desired_pods}
    return PodChange(
        deleted=_some({name: change.deleted for name, change in changes.items()}),
        created=_some(
            {HEAD_GROUP: 1 - running.get(HEAD_GROUP, 0), **{name: each.created for name, each in changes.items()}}
        ),
        orphaned=_some({**removed, **{name: each.orphaned for name, each in changes.items()}}),
    )


@dataclass(frozen=True)
class _GroupChange:
    deleted: int = 0
    created: int = 0
    orphaned: int = 0


def _of_group(before: Spec, after: Spec, running: int, scales: bool) -> _GroupChange:
    """The changes of a worker group that stays. With an autoscaler, only the autoscaler deletes pods."""
    desired_pods, hosts, had = desired(after), after["numOfHosts"], before["numOfHosts"]
    if after.get("suspend"):
        return _GroupChange(deleted=running)
    if hosts == 1:
        return _GroupChange(
            created=max(desired_pods - running, 0), deleted=0 if scales else max(running - desired_pods, 0)
        )
    if had == 1:
        # Pods of single-host replicas have no label with the replica's name, by which multi-host replicas are counted.
        return _GroupChange(created=desired_pods, orphaned=running)
    if hosts > had:
        # No replica is complete any more.
        return _GroupChange(created=desired_pods, deleted=running)
    missing = desired_pods // hosts - running // had
    return _GroupChange(created=max(missing, 0) * hosts, deleted=0 if scales else max(-missing, 0) * had)


def recreates(before: Spec, after: Spec) -> bool:
    """Whether KubeRay deletes all pods because `upgradeStrategy` is `Recreate` and the spec differs."""
    strategy = (after.get("upgradeStrategy") or {}).get("type")
    return strategy == "Recreate" and hashed(before) != hashed(after)


def hashed(spec: Spec) -> Any:
    """What KubeRay compares to see whether a RayCluster's spec has changed."""
    found = copy.deepcopy(normal(spec))
    found.pop("upgradeStrategy", None)
    groups = found.get("workerGroupSpecs", [])
    for group in groups:
        for key in _UNHASHED:
            group.pop(key, None)
        (group.get("scaleStrategy") or {}).pop("workersToDelete", None)
        if not group.get("scaleStrategy"):
            group.pop("scaleStrategy", None)
    for group in [found["headGroupSpec"], *groups]:
        pod = (group.get("template") or {}).get("spec") or {}
        for key in _UNHASHED_OF_PODS:
            pod.pop(key, None)
    return found


def groups_of(spec: Spec) -> dict[str, dict[str, Any]]:
    """The worker groups by name, with KubeRay's defaults."""
    groups = {group["groupName"]: group for group in spec.get("workerGroupSpecs") or ()}
    return {name: {**WORKER_GROUP_DEFAULTS, **_set_fields(group)} for name, group in groups.items()}


def desired(group: Spec) -> int:
    """The desired number of pods of a group (utils/util.go: GetWorkerGroupDesiredReplicas)."""
    if group.get("suspend"):
        return 0
    replicas: int = group["minReplicas"]
    if group["replicas"] >= replicas:
        replicas = min(group["replicas"], group["maxReplicas"])
    return int(replicas * group["numOfHosts"])


def least_running(spec: Spec) -> dict[str, int]:
    """The smallest number of pods that a RayCluster runs by its spec."""
    if spec.get("suspend"):
        return {}
    scales = spec.get("enableInTreeAutoscaling")
    groups = groups_of(spec)
    numbers = {n: g["minReplicas"] * g["numOfHosts"] if scales else desired(g) for n, g in groups.items()}
    return {HEAD_GROUP: 1, **numbers}


def most_running(spec: Spec) -> dict[str, int]:
    """The largest number of pods that a RayCluster runs; UNLIMITED and more if a group has no limit."""
    if spec.get("suspend"):
        return {}
    scales = spec.get("enableInTreeAutoscaling")
    groups = groups_of(spec)
    numbers = {n: g["maxReplicas"] * g["numOfHosts"] if scales else desired(g) for n, g in groups.items()}
    return {HEAD_GROUP: 1, **numbers}


def as_running(spec: Spec, running: Counts) -> Spec:
    """A spec of a RayCluster with autoscaling, with the replicas that the autoscaler must have set if these pods
    run."""
    if not spec.get("enableInTreeAutoscaling"):
        return spec
    groups = [
        {**group, "replicas": running.get(group["groupName"], 0) // (group.get("numOfHosts") or 1)}
        for group in spec.get("workerGroupSpecs") or ()
    ]
    return {**spec, "workerGroupSpecs": groups}


def _set_fields(group: Spec) -> dict[str, Any]:
    return {key: value for key, value in group.items() if value is not None}


def _some(counts: Counts) -> dict[str, int]:
    return {name: pods for name, pods in counts.items() if pods}
