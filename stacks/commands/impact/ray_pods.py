"""The effects of an edit on a RayCluster's pods, in words. Pure functions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.idle_termination.in_pod import rests_since
from components.ray_cluster.scaled import OWNED, Scaled, as_scaled, scales
from components.rollout.settings import UpdatesSettings
from kuberay.edits import Verdict
from kuberay.pods import (
    HEAD,
    UNLIMITED,
    Counts,
    PodChange,
    as_running,
    change_of_pods,
    groups_of,
    least_running,
    most_running,
)
from stacks.commands.impact.effects import Effect, Range

Body = Mapping[str, Any]

_OPERATOR = "kuberay ray-operator/controllers/ray/raycluster_controller.go: reconcilePods"


@dataclass(frozen=True)
class Known:
    """A RayCluster before the edit."""

    body: Body

    running: Counts | None = None
    """Its pods by group, if the cluster was read; None: their number follows from the stack file."""

    release: str = "1.6"
    """Minor version of the operator."""

    pods: Sequence[Body] = ()
    """The pods themselves, if the cluster was read."""

    updates: UpdatesSettings | None = None
    """How edits reached its pods before; None: unknown."""


def of_pods(before: Known, after: Body) -> list[Effect]:
    """What KubeRay does to pods, for the smallest and the largest number of pods that may run."""
    few, many = (_change(before, after, counts) for counts in _bounds(before))
    if many.recreated:
        return [_recreated(before, few, many)]
    running = _bounds(before)
    found = []
    for group in dict.fromkeys([*few.deleted, *many.deleted]):
        found.append(_ended(after, group, _of(few.deleted, many.deleted, group), _of(*running, group)))
    for group in dict.fromkeys([*few.orphaned, *many.orphaned]):
        found.append(_orphaned(after, group, _of(few.orphaned, many.orphaned, group)))
    for group in dict.fromkeys([*few.created, *many.created]):
        made = _of(few.created, many.created, group)
        found.append(Effect(Verdict.CREATES, f"creates {made.pods()} {_called(group)}", source=_OPERATOR, made=made))
    return [each for each in found if each.ended or each.made or each.verdict is Verdict.ORPHANS]


def _recreated(before: Known, few: PodChange, many: PodChange) -> Effect:
    ended = all_running(before)
    return Effect(
        Verdict.RECREATES,
        f"deletes all {ended.pods()} at once, including the head, and recreates them: what runs on them is lost",
        "upgradeStrategy is Recreate, which does so at each edit of the spec except numbers of replicas and "
        "tolerations, also when a worker group is added or an idle timeout changes",
        "apply the edit when nothing runs; or remove upgradeStrategy in the same edit: then only new pods change",
        "kuberay ray-operator/controllers/ray/utils/util.go: GenerateHashWithoutReplicasAndWorkersToDelete",
        ended=ended,
        made=range_of(sum(few.created.values()), sum(many.created.values())),
    )


def _ended(after: Body, group: str, ended: Range, of: Range) -> Effect:
    if after["spec"].get("suspend"):
        why, safer = "the RayCluster is suspended", "wait until nothing runs"
    elif groups_of(after["spec"]).get(group, {}).get("suspend"):
        why, safer = "the worker group is suspended", "wait until nothing runs"
    elif groups_of(after["spec"]).get(group, {}).get("numOfHosts", 1) > 1:
        why = "numOfHosts: workers without the desired number of hosts are deleted with all their pods"
        safer = "add a worker group with the new numOfHosts under another name, and retire the old one when it is idle"
    else:
        why = (
            "without the autoscaler KubeRay deletes any pods beyond the number of replicas, busy or not; pods that the "
            "autoscaler had added count, too"
        )
        safer = (
            "set replicas to the running number, and lower it when workers are idle; or let the autoscaler end idle "
            "workers"
        )
    text = f"deletes {ended} of {of.pods()} {_called(group)}"
    return Effect(Verdict.ENDS, text, why, safer, _OPERATOR, ended=ended, groups=(group,))


def _orphaned(after: Body, group: str, pods: Range) -> Effect:
    name = shown(group)
    if group in groups_of(after["spec"]):
        return Effect(
            Verdict.ORPHANS,
            f"orphans {pods.pods()} of group {name}: they continue to run, and KubeRay creates as many new workers",
            "KubeRay identifies workers with several hosts by labels that pods of the old numOfHosts do not have",
            "add a worker group with the new numOfHosts under another name, and retire the old one when it is idle",
            "kuberay ray-operator/controllers/ray/raycluster_controller.go: reconcileMultiHostWorkerGroup",
            groups=(group,),
        )
    breaks = (
        " Ray's autoscaler does not know them either: it fails while one of them exists, and the whole RayCluster no "
        "longer scales"
        if scales(dict(after))
        else ""
    )
    return Effect(
        Verdict.ORPHANS,
        f"orphans group {name}: {pods.pods()} continue to run with their GPUs, and nothing ends them",
        f"KubeRay only compares the pods of worker groups that the RayCluster has.{breaks}",
        "set `maxReplicas: 0` for the group, wait until it has no pods, and then remove it; renaming a group also "
        "removes it. Afterwards, in its namespace: "
        f"`kubectl delete pod -l ray.io/cluster={after['metadata']['name']},ray.io/group={group}`",
        f"{_OPERATOR}; kuberay#1739",
        groups=(group,),
    )


def beyond_most(before: Known, after: Body) -> Iterator[Effect]:
    """Workers that the autoscaler, not KubeRay, deletes because a group's maximum is lower now."""
    if not (scales(dict(after)) and scales(dict(before.body))):
        return
    least, most = _bounds(before)
    was = groups_of(before.body["spec"])
    for name, group in groups_of(after["spec"]).items():
        limit = group["maxReplicas"] * group["numOfHosts"]
        if name not in was or limit >= was[name]["maxReplicas"] * was[name]["numOfHosts"]:
            continue
        ended = _of({name: max(least.get(name, 0) - limit, 0)}, {name: _less(most.get(name, 0), limit)}, name)
        if ended:
            yield Effect(
                Verdict.ENDS,
                f"the autoscaler ends {ended} of {_of(least, most, name).pods()} {_called(name)}, first idle "
                "pods, then busy ones",
                f"maxReplicas is {group['maxReplicas']} now, and the autoscaler applies it at once",
                "wait until no more than that many run",
                "ray python/ray/autoscaler/v2/scheduler.py: _enforce_max_workers_per_type",
                ended=ended,
                groups=(name,),
            )


def _change(before: Known, after: Body, counts: Counts) -> PodChange:
    """What KubeRay does if this many pods run."""
    was = before.body
    if before.running is None:
        was = {**was, "spec": as_running(was["spec"], counts)}
    return change_of_pods(was["spec"], sent(was, after)["spec"], counts)


def sent(before: Body, after: Body) -> Body:
    """The RayCluster that an update sends: with the values that the autoscaler has set."""
    if not scales(dict(after)):
        return after
    alive = {
        group["groupName"]: {key: group[key] for key in OWNED if key in group}
        for group in before["spec"].get("workerGroupSpecs") or ()
    }
    return as_scaled(dict(after), Scaled(None, alive))[0]


def as_suspended(before: Known, after: Body) -> Body:
    """The RayCluster after an update, which leaves `suspend` as the idle termination or `wake` wrote it."""
    live = before.body["spec"].get("suspend")
    if before.running is None or "suspend" in after["spec"] or not (live is False or rests_since(before.body)):
        return after
    return {**after, "spec": {**after["spec"], "suspend": live}}


def _bounds(before: Known) -> tuple[Counts, Counts]:
    if before.running is not None:
        return before.running, before.running
    return least_running(before.body["spec"]), most_running(before.body["spec"])


def all_running(before: Known) -> Range:
    least, most = _bounds(before)
    return range_of(sum(least.values()), sum(most.values()))


def running_of(before: Known, groups: Collection[str]) -> Range:
    """The running pods of some groups."""
    few, many = (sum(bound.get(group, 0) for group in groups) for bound in _bounds(before))
    return range_of(few, many)


def range_of(least: int, most: int) -> Range:
    return Range(least, None if most >= UNLIMITED else most)


def _of(least: Counts, most: Counts, group: str) -> Range:
    few, many = sorted((least.get(group, 0), most.get(group, 0)))
    return range_of(few, many)


def _less(number: int, by: int) -> int:
    return number if number >= UNLIMITED else max(number - by, 0)


def _called(group: str) -> str:
    return "of the head" if group == HEAD else f"of worker group {shown(group)}"


def shown(group: str) -> str:
    return group if group.isprintable() else repr(group)
