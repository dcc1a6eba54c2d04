"""The effects of an edit on a RayCluster's pods, in words; and what `updates` do with an edit that KubeRay alone would
not apply to pods. Pure functions.

Follows components/rollout. `updates` may not replace busy pods, or any pods. A later `up` with another strategy
continues with these pods, even if nothing else is edited (components/rollout/replacing.py).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from components.payloads.idle_termination import rests_since
from components.queues.admitted import as_admitted
from components.ray_cluster.pods import OPTIONS
from components.ray_cluster.request import OWNED, Scaled, as_scaled, scales
from components.rollout.settings import UpdatesSettings
from components.rollout.templates import parts, recreates, stamped
from core.body import ReadOnlyBody
from kuberay.edits import Rule, Verdict
from kuberay.pods import (
    UNLIMITED,
    Counts,
    PodChange,
    as_running,
    change_of_pods,
    groups_of,
    least_running,
    most_running,
)
from kuberay.ray_start import drain_of
from kuberay.rules import HEAD_GROUP
from kuberay.schedulers import KUEUE_QUEUE_LABEL
from stacks.commands.impact.effects import Effect, Range

_OPERATOR = "kuberay ray-operator/controllers/ray/raycluster_controller.go: reconcilePods"


@dataclass(frozen=True)
class Known:
    """A RayCluster before the edit."""

    body: ReadOnlyBody

    running: Counts | None = None
    """Its pods by group, if the cluster was read; None: their number follows from the stack file."""

    release: str = "1.6"
    """Minor version of the operator."""

    pods: Sequence[ReadOnlyBody] = ()
    """The pods themselves, if the cluster was read."""

    updates: UpdatesSettings | None = None
    """How edits reached its pods before; None: unknown."""


def of_pods(before: Known, after: ReadOnlyBody) -> list[Effect]:
    """What KubeRay does to pods, for the smallest and the largest number of pods that may run."""
    few, many = (_change(before, after, counts) for counts in _bounds(before))
    if many.recreated:
        return [_recreated(before, few, many)]
    running = _bounds(before)
    found = []
    for group in dict.fromkeys([*few.deleted, *many.deleted]):
        ended = _ended(after, group, _range_for(few.deleted, many.deleted, group), _range_for(*running, group))
        found.append(replace(ended, reason=f"{ended.reason}{drains(before, group)}"))
    for group in dict.fromkeys([*few.orphaned, *many.orphaned]):
        found.append(_orphaned(after, group, _range_for(few.orphaned, many.orphaned, group)))
    for group in dict.fromkeys([*few.created, *many.created]):
        made = _range_for(few.created, many.created, group)
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


def _ended(after: ReadOnlyBody, group: str, ended: Range, of: Range) -> Effect:
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


def _orphaned(after: ReadOnlyBody, group: str, pods: Range) -> Effect:
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


def beyond_most(before: Known, after: ReadOnlyBody) -> Iterator[Effect]:
    """Workers that the autoscaler, not KubeRay, deletes because a group's maximum is lower now."""
    if not (scales(dict(after)) and scales(dict(before.body))):
        return
    least, most = _bounds(before)
    was = groups_of(before.body["spec"])
    for name, group in groups_of(after["spec"]).items():
        limit = group["maxReplicas"] * group["numOfHosts"]
        if name not in was or limit >= was[name]["maxReplicas"] * was[name]["numOfHosts"]:
            continue
        ended = _range_for({name: max(least.get(name, 0) - limit, 0)}, {name: _less(most.get(name, 0), limit)}, name)
        if ended:
            yield Effect(
                Verdict.ENDS,
                f"the autoscaler ends {ended} of {_range_for(least, most, name).pods()} {_called(name)}, first idle "
                "pods, then busy ones",
                f"maxReplicas is {group['maxReplicas']} now, and the autoscaler applies it at once"
                f"{drains(before, name)}",
                "wait until no more than that many run",
                "ray python/ray/autoscaler/v2/scheduler.py: _enforce_max_workers_per_type",
                ended=ended,
                groups=(name,),
            )


def drains(before: Known, group: str) -> str:
    """What happens to the work on a worker that ends while its head stays, for the end of a reason."""
    spec = before.body["spec"]
    if group not in (groups := groups_of(spec)) or not (
        most := drain_of(groups[group]["template"]["spec"], spec.get("rayVersion"))
    ):
        return ""
    return f". A worker drains first: work that does not end within {most} s is lost"


def _change(before: Known, after: ReadOnlyBody, counts: Counts) -> PodChange:
    """What KubeRay does if this many pods run."""
    was = before.body
    if before.running is None:
        was = {**was, "spec": as_running(was["spec"], counts)}
    return change_of_pods(was["spec"], sent(was, after)["spec"], counts)


def sent(before: ReadOnlyBody, after: ReadOnlyBody) -> ReadOnlyBody:
    """The RayCluster after an update, with the values that Kueue and the autoscaler have set."""
    if KUEUE_QUEUE_LABEL in (after["metadata"].get("labels") or {}):
        after = {**after, "spec": as_admitted(after["spec"], before["spec"])}
    if not scales(dict(after)):
        return after
    alive = {
        group["groupName"]: {key: group[key] for key in OWNED if key in group}
        for group in before["spec"].get("workerGroupSpecs") or ()
    }
    return as_scaled(dict(after), Scaled(None, alive))[0]


def as_suspended(before: Known, after: ReadOnlyBody) -> ReadOnlyBody:
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


def _running_of(before: Known, groups: Collection[str]) -> Range:
    few, many = (sum(bound.get(group, 0) for group in groups) for bound in _bounds(before))
    return range_of(few, many)


def range_of(least: int, most: int) -> Range:
    return Range(least, None if most >= UNLIMITED else most)


def _range_for(least: Counts, most: Counts, group: str) -> Range:
    few, many = sorted((least.get(group, 0), most.get(group, 0)))
    return range_of(few, many)


def _less(number: int, by: int) -> int:
    return number if number >= UNLIMITED else max(number - by, 0)


def _called(group: str) -> str:
    return "of the head" if group == HEAD_GROUP else f"of worker group {shown(group)}"


def shown(group: str) -> str:
    return group if group.isprintable() else repr(group)


BY_KUBERAY_ALONE = UpdatesSettings(strategy="none")

REPLACING = "components/rollout/replacing.py"
_RETIREMENT = "components/rollout/retirement.py"
_AT_ONCE = "`updates: {strategy: immediate}` recreates the head, and ends what runs on the RayCluster; or "
_HEAD_AT_ONCE = "`updates: {strategy: immediate}` recreates the head, and workers with their actors continue; or "
_WAIT = "wait until nothing runs; or set `updates: {strategy: drain}`, which waits for busy workers"


def reached(
    before: Known, after: ReadOnlyBody, rule: Rule, groups: Sequence[str], updates: UpdatesSettings, *, head: bool
) -> Effect:
    """The effect on running pods of editing a rule's fields; `{groups}` in its text stands for `groups`.

    `head`: whether the whole edit reaches the head's pod.
    """
    plain = Effect(rule.verdict, rule.text, rule.reason, rule.safer, rule.source)
    if rule.pods is None or updates.strategy == "none" or recreates(after["spec"]):
        return plain
    why = f"`updates: {{strategy: {updates.strategy}}}`"
    if updates.strategy == "immediate":
        return _at_once(before, after, rule, groups, why, head)
    if rule.verdict is Verdict.STRANDS:
        text = "the preview refuses the edit: new workers could not join the head, which does not change"
        safer = f"{_AT_ONCE}add a RayCluster with another name, and remove this one when its work has ended"
        return Effect(Verdict.REFUSED, text, f"{why} does not replace the head", safer, REPLACING)
    if rule.pods == "head":
        return replace(plain, safer=(_HEAD_AT_ONCE if _tolerant(before, after) else _AT_ONCE) + rule.safer)
    there = _running_of(before, groups)
    gone = Range(0, there.most)
    if updates.strategy == "drain":
        text = (
            "running workers of {groups} take no new work; `up` waits, replaces each worker once it is idle, and ends "
            f"the rest after {updates.limit}, with what runs on them"
        )
        safer = "set a `limit` that the longest task does not exceed"
        return Effect(Verdict.ROLLING, text, why, safer, REPLACING, gone, gone, tuple(groups), limit=updates.limit)
    text = (
        "idle workers of {groups} are replaced; busy workers do not change, and each further `up` replaces those that "
        "are idle then"
    )
    safer = "`updates: {strategy: drain}` waits for the busy workers, so that all have the edit after the `up`"
    return Effect(Verdict.NEW_PODS, text, why, safer, REPLACING, gone, gone, tuple(groups))


def _tolerant(before: Known, after: ReadOnlyBody) -> bool:
    """Whether workers continue while the head is recreated: it has fault tolerance before and after the edit."""
    return OPTIONS in after["spec"] and OPTIONS in before.body["spec"]


def _at_once(before: Known, after: ReadOnlyBody, rule: Rule, groups: Sequence[str], why: str, head: bool) -> Effect:
    if rule.pods == "workers":
        of, whose, verdict = tuple(groups), "workers of {groups}", Verdict.ENDS
    elif rule.pods == "head" and _tolerant(before, after):
        of, whose, verdict = (HEAD_GROUP,), "the head", Verdict.ENDS
    else:
        of, whose, verdict = (), "the head and all workers", Verdict.RECREATES
    ended = _running_of(before, of) if of else all_running(before)
    text = f"{whose}: {ended.pods()} deleted at once and recreated, busy or not"
    # Workers drain while there is a head.
    alone = rule.pods == "workers" and (not head or _tolerant(before, after))
    drained = {drains(before, group) for group in groups} if alone else set()
    if len(drained) == 1 and "" not in drained:
        why += drained.pop()
    else:
        text += "; what runs there is lost"
    safer = "apply the edit when nothing runs; or set `updates: {strategy: drain}` if only workers change"
    return Effect(verdict, text, why, safer, REPLACING, ended, ended, of)


def in_kueue(body: ReadOnlyBody) -> bool:
    """Whether a RayCluster is in a queue of Kueue."""
    return KUEUE_QUEUE_LABEL in (body["metadata"].get("labels") or {})


def _replaced_externally(after: ReadOnlyBody) -> bool:
    """Whether KubeRay or Kueue replaces the RayCluster's pods, so that `updates` have no effect."""
    return recreates(after["spec"]) or (in_kueue(after) and not scales(dict(after)))


def removed_group(before: Known, after: ReadOnlyBody, effect: Effect, updates: UpdatesSettings) -> Effect:
    """The effect on the workers of a removed group, which KubeRay would orphan; other effects are returned unchanged.

    `effect`: one of `of_pods`.
    """
    if effect.verdict is not Verdict.ORPHANS or effect.groups[0] in groups_of(after["spec"]):
        return effect
    [group] = effect.groups
    if _replaced_externally(after):
        return effect
    there, name, scaling = _running_of(before, [group]), shown(group), scales(dict(after))
    why = f"`updates: {{strategy: {updates.strategy}}}`"
    if updates.strategy == "none":
        if not scaling:
            return effect
        text = f"worker group {name} stays while it has workers, {there.pods()} now: `pulumi up` ends with an error"
        return Effect(Verdict.REFUSED, text, f"{why} ends no worker", _WAIT, _RETIREMENT)
    if updates.strategy == "immediate":
        text = f"ends {there.pods()} of worker group {name}, busy or not, and removes it"
        return Effect(Verdict.ENDS, text, f"{why}{drains(before, group)}", _WAIT, _RETIREMENT, there, groups=(group,))
    gone = Range(0, there.most)
    if updates.strategy == "drain":
        text = (
            f"worker group {name} takes no new work; `up` waits until its workers, {there.pods()}, are idle, ends the "
            f"rest after {updates.limit}, and removes it"
        )
        safer = "set a `limit` that the longest task does not exceed"
        return Effect(Verdict.ROLLING, text, why, safer, _RETIREMENT, gone, groups=(group,), limit=updates.limit)
    if scaling:
        text = (
            f"worker group {name} is removed if its workers, {there.pods()}, are idle; if one is busy, `pulumi up` "
            "ends with an error that names it, and does not change the RayCluster"
        )
    else:
        text = (
            f"worker group {name} is removed with the idle workers among its {there.pods()}; busy workers continue "
            "until an `up` finds them idle"
        )
    return Effect(Verdict.ROLLING, text, why, _WAIT, _RETIREMENT, gone, groups=(group,))


_SAFER = (
    "apply the edit when nothing runs; or set `updates: {strategy: drain}`, which keeps the head and waits for workers"
)


def outdated_pods(
    before: Known, after: ReadOnlyBody, updates: UpdatesSettings, effects: Iterable[Effect]
) -> Iterator[Effect]:
    """The effects of `updates` on pods that are older than the live RayCluster, without the pods that end by
    `effects`."""
    if updates.strategy == "none" or _replaced_externally(after):
        return
    why = f"`updates: {{strategy: {updates.strategy}}}`, and pods that are older than the live RayCluster"
    if before.running is None:
        yield from _unread(before, updates, why)
        return
    ending = [effect for effect in effects if effect.ended]
    if any(not effect.groups for effect in ending):
        return
    known = {group for effect in ending if effect.source == REPLACING for group in effect.groups}
    old = {group: pods for group, pods in _old(before, after).items() if group not in known}
    if HEAD_GROUP in old and updates.strategy == "immediate" and OPTIONS not in after["spec"]:
        ended = all_running(before)
        text = (
            f"earlier edits did not reach the head: the head and all workers, {ended.pods()}, are deleted at once and "
            "recreated"
        )
        yield Effect(Verdict.RECREATES, text, why, _SAFER, REPLACING, ended, ended)
        return
    for name, pods in old.items():
        if name != HEAD_GROUP or updates.strategy == "immediate":
            yield _of_group(name, pods, updates, why)


def _unread(before: Known, updates: UpdatesSettings, why: str) -> Iterator[Effect]:
    """For pods that were not read: another strategy may have left some."""
    if updates.strategy == "immediate" and before.updates and before.updates.strategy != "immediate":
        ended = Range(0, all_running(before).most)
        text = f"pods that earlier edits did not reach, {ended} of them, are deleted at once and recreated"
        yield Effect(Verdict.ENDS, text, why, _SAFER, REPLACING, ended, ended)


def _of_group(name: str, pods: int, updates: UpdatesSettings, why: str) -> Effect:
    there, whose = range_of(pods, pods), "the head" if name == HEAD_GROUP else f"worker group {shown(name)}"
    gone = Range(0, pods)
    if updates.strategy == "immediate":
        text = f"earlier edits did not reach {there.pods()} of {whose}: deleted at once and recreated, busy or not"
        return Effect(Verdict.ENDS, text, why, _SAFER, REPLACING, there, there, (name,))
    if updates.strategy == "drain":
        text = (
            f"earlier edits did not reach {there.pods()} of {whose}: no new work from now on, replaced when idle, and "
            f"ended after {updates.limit}"
        )
        safer = "set a `limit` that the longest task does not exceed"
        return Effect(Verdict.ROLLING, text, why, safer, REPLACING, gone, gone, (name,), limit=updates.limit)
    text = f"earlier edits did not reach {there.pods()} of {whose}: replaced if idle"
    return Effect(Verdict.NEW_PODS, text, why, "", REPLACING, gone, gone, (name,))


def _old(before: Known, after: ReadOnlyBody) -> dict[str, int]:
    """By group, the pods that were old before the edit and still are; without groups that the edit removes."""
    # Imported here: pods are only known if the cluster was read, and comparing two files must not import its client.
    from components.rollout.pods import group
    from components.rollout.replacing import old_heads, old_workers

    live = before.body["spec"]
    was, will = parts(live), parts(stamped(dict(after), live)["spec"])
    leaving = groups_of(live).keys() - groups_of(after["spec"]).keys()
    old = old_workers(old_workers(before.pods, was), will)
    found = Counter(str(group(pod)) for pod in old if group(pod) not in leaving)
    heads = len(old_heads(old_heads(before.pods, was), will))
    return {**({HEAD_GROUP: heads} if heads else {}), **found}
