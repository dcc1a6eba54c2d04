"""Which pods of a RayCluster KubeRay deletes and makes after an edit. Pure functions.

As the operator does it: ray-operator/controllers/ray/raycluster_controller.go, reconcilePods and
reconcileMultiHostWorkerGroup, at v1.6.2 with the feature gates that are on by default.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .differences import DEFAULTS, normal

Spec = Mapping[str, Any]

Counts = Mapping[str, int]
"""Pods by the name of their group, as in label `ray.io/group`."""

HEAD = "headgroup"
"""The head's (ray-operator/controllers/ray/utils/constant.go: RayNodeHeadGroupLabelValue)."""

UNLIMITED = DEFAULTS["maxReplicas"]

_UNHASHED = ("replicas", "minReplicas", "maxReplicas")
_UNHASHED_OF_PODS = ("tolerations", "schedulingGates")
"""What `Recreate` does not look at (ray-operator/controllers/ray/utils/util.go:
GenerateHashWithoutReplicasAndWorkersToDelete)."""


@dataclass(frozen=True)
class PodChange:
    """What becomes of a RayCluster's pods, by group; a group is left out where there is nothing to say."""

    deleted: Counts = field(default_factory=dict)
    """Deleted by KubeRay, at once."""

    created: Counts = field(default_factory=dict)

    orphaned: Counts = field(default_factory=dict)
    """Of a group that the RayCluster has no more, or that are no replica of it any more: they run on."""

    recreated: bool = False
    """Whether `upgradeStrategy: Recreate` takes them all."""


def change_of_pods(before: Spec, after: Spec, running: Counts) -> PodChange:
    """What the operator does when the spec `before`, of which pods are `running`, becomes `after`."""
    if after.get("suspend"):
        return PodChange(deleted=_some(running))
    wanted = {HEAD: 1, **{name: desired(group) for name, group in groups_of(after).items()}}
    if running and recreates(before, after):
        return PodChange(deleted=_some(running), created=_some(wanted), recreated=True)
    was, scales = groups_of(before), bool(after.get("enableInTreeAutoscaling"))
    changes = {
        name: _of_group(was.get(name, group), group, running.get(name, 0), scales)
        for name, group in groups_of(after).items()
    }
    removed = {name: pods for name, pods in running.items() if name not in wanted}
    return PodChange(
        deleted=_some({name: change.deleted for name, change in changes.items()}),
        created=_some({HEAD: 1 - running.get(HEAD, 0), **{name: each.created for name, each in changes.items()}}),
        orphaned=_some({**removed, **{name: each.orphaned for name, each in changes.items()}}),
    )


@dataclass(frozen=True)
class _GroupChange:
    deleted: int = 0
    created: int = 0
    orphaned: int = 0


def _of_group(before: Spec, after: Spec, there: int, scales: bool) -> _GroupChange:
    """What becomes of the pods of a worker group that stays. With an autoscaler it is alone to delete any."""
    wanted, hosts, had = desired(after), after["numOfHosts"], before["numOfHosts"]
    if after.get("suspend"):
        return _GroupChange(deleted=there)
    if hosts == 1:
        return _GroupChange(created=max(wanted - there, 0), deleted=0 if scales else max(there - wanted, 0))
    if had == 1:
        # What was a replica by itself bears no replica's name, by which those of several hosts are counted.
        return _GroupChange(created=wanted, orphaned=there)
    if hosts > had:
        # No replica is whole any more.
        return _GroupChange(created=wanted, deleted=there)
    missing = wanted // hosts - there // had
    return _GroupChange(created=max(missing, 0) * hosts, deleted=0 if scales else max(-missing, 0) * had)


def recreates(before: Spec, after: Spec) -> bool:
    """Whether KubeRay deletes all pods because the RayCluster says `Recreate` and its spec is another."""
    strategy = (after.get("upgradeStrategy") or {}).get("type")
    return strategy == "Recreate" and _hashed(before) != _hashed(after)


def _hashed(spec: Spec) -> Any:
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
    said = {group["groupName"]: group for group in spec.get("workerGroupSpecs") or ()}
    return {name: {**DEFAULTS, **_said(group)} for name, group in said.items()}


def desired(group: Spec) -> int:
    """Pods that KubeRay wants of a group (utils/util.go: GetWorkerGroupDesiredReplicas)."""
    if group.get("suspend"):
        return 0
    replicas: int = group["minReplicas"]
    if group["replicas"] >= replicas:
        replicas = min(group["replicas"], group["maxReplicas"])
    return int(replicas * group["numOfHosts"])


def least_running(spec: Spec) -> dict[str, int]:
    """Pods that a RayCluster has at least, as far as its spec says."""
    if spec.get("suspend"):
        return {}
    scales = spec.get("enableInTreeAutoscaling")
    groups = groups_of(spec)
    numbers = {n: g["minReplicas"] * g["numOfHosts"] if scales else desired(g) for n, g in groups.items()}
    return {HEAD: 1, **numbers}


def most_running(spec: Spec) -> dict[str, int]:
    """Pods that a RayCluster has at most; UNLIMITED and more where a group has no limit."""
    if spec.get("suspend"):
        return {}
    scales = spec.get("enableInTreeAutoscaling")
    groups = groups_of(spec)
    numbers = {n: g["maxReplicas"] * g["numOfHosts"] if scales else desired(g) for n, g in groups.items()}
    return {HEAD: 1, **numbers}


def as_running(spec: Spec, running: Counts) -> Spec:
    """A spec of a RayCluster that scales with the numbers that its autoscaler has set where so many pods run."""
    if not spec.get("enableInTreeAutoscaling"):
        return spec
    groups = [
        {**group, "replicas": running.get(group["groupName"], 0) // (group.get("numOfHosts") or 1)}
        for group in spec.get("workerGroupSpecs") or ()
    ]
    return {**spec, "workerGroupSpecs": groups}


def _said(group: Spec) -> dict[str, Any]:
    return {key: value for key, value in group.items() if value is not None}


def _some(counts: Counts) -> dict[str, int]:
    return {name: pods for name, pods in counts.items() if pods}
