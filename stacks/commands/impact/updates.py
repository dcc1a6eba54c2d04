"""What `updates` of a RayCluster do with an edit that KubeRay alone would not apply to pods. Pure functions.

Follows components/rollout. `updates` may not replace busy pods, or any pods. A later `up` with another strategy
continues with these pods, even if nothing else is edited (components/rollout/replacing.py).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.queues.volcano import KUEUE_QUEUE_LABEL
from components.ray_cluster.pods import OPTIONS
from components.ray_cluster.scaled import scales
from components.rollout.settings import UpdatesSettings
from components.rollout.templates import parts, recreates, stamped
from kuberay.edits import Rule, Verdict
from kuberay.pods import HEAD, groups_of
from stacks.commands.impact.effects import Effect, Range
from stacks.commands.impact.ray_pods import Known, all_running, range_of, running_of, shown

Body = Mapping[str, Any]

BY_KUBERAY_ALONE = UpdatesSettings(strategy="none")

REPLACING = "components/rollout/replacing.py"
_RETIREMENT = "components/rollout/retirement.py"
_AT_ONCE = "`updates: {strategy: immediate}` recreates the head, and ends what runs on the RayCluster; or "
_WAIT = "wait until nothing runs; or set `updates: {strategy: drain}`, which waits for busy workers"


def reached(before: Known, after: Body, rule: Rule, groups: Sequence[str], updates: UpdatesSettings) -> Effect:
    """The effect on running pods of editing a rule's fields; `{groups}` in its text stands for `groups`."""
    plain = Effect(rule.verdict, rule.text, rule.reason, rule.safer, rule.source)
    if rule.pods is None or updates.strategy == "none" or recreates(after["spec"]):
        return plain
    why = f"`updates: {{strategy: {updates.strategy}}}`"
    if updates.strategy == "immediate":
        return _at_once(before, after, rule, groups, why)
    if rule.verdict is Verdict.STRANDS:
        text = "the preview refuses the edit: new workers could not join the head, which does not change"
        safer = f"{_AT_ONCE}add a RayCluster with another name, and remove this one when its work has ended"
        return Effect(Verdict.REFUSED, text, f"{why} does not replace the head", safer, REPLACING)
    if rule.pods == "head":
        return replace(plain, safer=_AT_ONCE + rule.safer)
    there = running_of(before, groups)
    gone = Range(0, there.most)
    if updates.strategy == "drain":
        text = (
            "running workers of {groups} take no new work; `up` waits, replaces each worker once it is idle, and ends "
            f"the rest after {updates.limit}, with what runs on them"
        )
        safer = "set a `limit` that the longest task does not exceed"
        return Effect(Verdict.ROLLING, text, why, safer, REPLACING, gone, gone, tuple(groups))
    text = (
        "idle workers of {groups} are replaced; busy workers do not change, and each further `up` replaces those that "
        "are idle then"
    )
    safer = "`updates: {strategy: drain}` waits for the busy workers, so that all have the edit after the `up`"
    return Effect(Verdict.NEW_PODS, text, why, safer, REPLACING, gone, gone, tuple(groups))


def _at_once(before: Known, after: Body, rule: Rule, groups: Sequence[str], why: str) -> Effect:
    if rule.pods == "workers":
        of, whose, verdict = tuple(groups), "workers of {groups}", Verdict.ENDS
    elif rule.pods == "head" and _outlived(before, after):
        of, whose, verdict = (HEAD,), "the head", Verdict.ENDS
    else:
        of, whose, verdict = (), "the head and all workers", Verdict.RECREATES
    ended = running_of(before, of) if of else all_running(before)
    text = f"{whose}: {ended.pods()} deleted at once and recreated, busy or not; what runs there is lost"
    safer = "apply the edit when nothing runs; or set `updates: {strategy: drain}` if only workers change"
    return Effect(verdict, text, why, safer, REPLACING, ended, ended, of)


def _outlived(before: Known, after: Body) -> bool:
    """Whether workers outlive the head."""
    return OPTIONS in after["spec"] and OPTIONS in before.body["spec"]


def replaced_externally(after: Body) -> bool:
    """Whether KubeRay or Kueue replaces the RayCluster's pods, so that `updates` have no effect."""
    return recreates(after["spec"]) or KUEUE_QUEUE_LABEL in (after["metadata"].get("labels") or {})


def removed_group(before: Known, after: Body, effect: Effect, updates: UpdatesSettings) -> Effect:
    """The effect on the workers of a removed group, which KubeRay would orphan; other effects are returned unchanged.

    `effect`: one of `of_pods`.
    """
    if effect.verdict is not Verdict.ORPHANS or effect.groups[0] in groups_of(after["spec"]):
        return effect
    [group] = effect.groups
    if replaced_externally(after):
        return effect
    there, name, scaling = running_of(before, [group]), shown(group), scales(dict(after))
    why = f"`updates: {{strategy: {updates.strategy}}}`"
    if updates.strategy == "none":
        if not scaling:
            return effect
        text = f"worker group {name} stays while it has workers, {there.pods()} now: `pulumi up` ends with an error"
        return Effect(Verdict.REFUSED, text, f"{why} ends no worker", _WAIT, _RETIREMENT)
    if updates.strategy == "immediate":
        text = f"ends {there.pods()} of worker group {name}, busy or not, and removes it"
        return Effect(Verdict.ENDS, text, why, _WAIT, _RETIREMENT, there, groups=(group,))
    gone = Range(0, there.most)
    if updates.strategy == "drain":
        text = (
            f"worker group {name} takes no new work; `up` waits until its workers, {there.pods()}, are idle, ends the "
            f"rest after {updates.limit}, and removes it"
        )
        safer = "set a `limit` that the longest task does not exceed"
        return Effect(Verdict.ROLLING, text, why, safer, _RETIREMENT, gone, groups=(group,))
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


def outdated_pods(before: Known, after: Body, updates: UpdatesSettings, effects: Iterable[Effect]) -> Iterator[Effect]:
    """The effects of `updates` on pods that are older than the live RayCluster, without the pods that end by
    `effects`."""
    if updates.strategy == "none" or replaced_externally(after):
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
    if HEAD in old and updates.strategy == "immediate" and OPTIONS not in after["spec"]:
        ended = all_running(before)
        text = (
            f"earlier edits did not reach the head: the head and all workers, {ended.pods()}, are deleted at once and "
            "recreated"
        )
        yield Effect(Verdict.RECREATES, text, why, _SAFER, REPLACING, ended, ended)
        return
    for name, pods in old.items():
        if name != HEAD or updates.strategy == "immediate":
            yield _of(name, pods, updates, why)


def _unread(before: Known, updates: UpdatesSettings, why: str) -> Iterator[Effect]:
    """For pods that were not read: another strategy may have left some."""
    if updates.strategy == "immediate" and before.updates and before.updates.strategy != "immediate":
        ended = Range(0, all_running(before).most)
        text = f"pods that earlier edits did not reach, {ended} of them, are deleted at once and recreated"
        yield Effect(Verdict.ENDS, text, why, _SAFER, REPLACING, ended, ended)


def _of(name: str, pods: int, updates: UpdatesSettings, why: str) -> Effect:
    there, whose = range_of(pods, pods), "the head" if name == HEAD else f"worker group {shown(name)}"
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
        return Effect(Verdict.ROLLING, text, why, safer, REPLACING, gone, gone, (name,))
    text = f"earlier edits did not reach {there.pods()} of {whose}: replaced if idle"
    return Effect(Verdict.NEW_PODS, text, why, "", REPLACING, gone, gone, (name,))


def _old(before: Known, after: Body) -> dict[str, int]:
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
    return {**({HEAD: heads} if heads else {}), **found}
