"""What `updates` of a RayCluster do with an edit that KubeRay alone would not apply to pods. Pure functions.

Follows components/rollout. `updates` leave busy pods, or all pods, as they are. A later `up` with another strategy
continues with these pods, even if nothing else is edited (components/rollout/replacing.py).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.queues.volcano import KUEUE_QUEUE_LABEL
from components.ray_cluster.fault_tolerance import OPTIONS
from components.ray_cluster.scaled import scales
from components.rollout.settings import UpdatesSettings
from components.rollout.templates import parts, recreates, stamped
from kuberay.edits import Rule, Verdict
from kuberay.pods import HEAD, groups_of

from .effects import Effect, Range
from .ray_pods import Known, all_running, range_of, running_of, shown

Body = Mapping[str, Any]

BY_KUBERAY_ALONE = UpdatesSettings(strategy="none")

REPLACING = "components/rollout/replacing.py"
_RETIREMENT = "components/rollout/retirement.py"
_AT_ONCE = "`updates: {strategy: immediate}` makes the head anew, and ends what runs on the RayCluster; or "
_WAIT = "wait until nothing runs; or set `updates: {strategy: drain}`, and busy workers are waited for"


def reached(before: Known, after: Body, rule: Rule, groups: Sequence[str], updates: UpdatesSettings) -> Effect:
    """The effect on running pods when fields of a rule are edited; `{groups}` in its text stands for `groups`."""
    plain = Effect(rule.verdict, rule.effect, rule.reason, rule.safer, rule.source)
    if rule.pods is None or updates.strategy == "none" or recreates(after["spec"]):
        return plain
    why = f"`updates: {{strategy: {updates.strategy}}}`"
    if updates.strategy == "immediate":
        return _at_once(before, after, rule, groups, why)
    if rule.verdict is Verdict.STRANDS:
        says = "the preview refuses it: new workers could not join the head, which stays as it is"
        safer = f"{_AT_ONCE}add a RayCluster with another name, and remove this one when its work is done"
        return Effect(Verdict.REFUSED, says, f"{why} does not replace the head", safer, REPLACING)
    if rule.pods == "head":
        return replace(plain, safer=_AT_ONCE + rule.safer)
    there = running_of(before, groups)
    gone = Range(0, there.most)
    if updates.strategy == "drain":
        says = (
            "workers of {groups} that run take no new work; `up` waits, replaces each once it is idle, and ends the "
            f"rest after {updates.limit}, with what runs on them"
        )
        safer = "give a `limit` that the longest task keeps"
        return Effect(Verdict.ROLLING, says, why, safer, REPLACING, gone, gone, tuple(groups))
    says = (
        "workers of {groups} that are idle are replaced; busy ones stay as they are, and each further `up` replaces "
        "those that are idle by then"
    )
    safer = "`updates: {strategy: drain}` waits for the busy ones, so that all are as edited after the `up`"
    return Effect(Verdict.NEW_PODS, says, why, safer, REPLACING, gone, gone, tuple(groups))


def _at_once(before: Known, after: Body, rule: Rule, groups: Sequence[str], why: str) -> Effect:
    if rule.pods == "workers":
        of, whose, verdict = tuple(groups), "workers of {groups}", Verdict.ENDS
    elif rule.pods == "head" and _outlived(before, after):
        of, whose, verdict = (HEAD,), "the head", Verdict.ENDS
    else:
        of, whose, verdict = (), "the head and all workers", Verdict.RECREATES
    ended = running_of(before, of) if of else all_running(before)
    says = f"{whose}: {ended.pods()} deleted at once and made anew, busy or not; what runs there is lost"
    safer = "do it when nothing runs; or `updates: {strategy: drain}` where only workers change"
    return Effect(verdict, says, why, safer, REPLACING, ended, ended, of)


def _outlived(before: Known, after: Body) -> bool:
    """Whether workers outlive the head."""
    return OPTIONS in after["spec"] and OPTIONS in before.body["spec"]


def by_others(after: Body) -> bool:
    """Whether KubeRay or Kueue replaces the RayCluster's pods, so that `updates` have no effect."""
    return recreates(after["spec"]) or KUEUE_QUEUE_LABEL in (after["metadata"].get("labels") or {})


def left(before: Known, after: Body, effect: Effect, updates: UpdatesSettings) -> Effect:
    """The effect on the workers of a removed group, which KubeRay would forget; other effects are returned unchanged.

    `effect`: one of `of_pods`.
    """
    if effect.verdict is not Verdict.ORPHANS or effect.groups[0] in groups_of(after["spec"]):
        return effect
    [group] = effect.groups
    if by_others(after):
        return effect
    there, name, scaling = running_of(before, [group]), shown(group), scales(dict(after))
    why = f"`updates: {{strategy: {updates.strategy}}}`"
    if updates.strategy == "none":
        if not scaling:
            return effect
        says = (
            f"worker group {name} stays as long as it has workers, {there.pods()} now: `pulumi up` ends with an error"
        )
        return Effect(Verdict.REFUSED, says, f"{why} ends no worker", _WAIT, _RETIREMENT)
    if updates.strategy == "immediate":
        says = f"ends {there.pods()} of worker group {name}, busy or not, and removes it"
        return Effect(Verdict.ENDS, says, why, _WAIT, _RETIREMENT, there, groups=(group,))
    gone = Range(0, there.most)
    if updates.strategy == "drain":
        says = (
            f"worker group {name} takes no new work; `up` waits until its workers, {there.pods()}, are idle, ends the "
            f"rest after {updates.limit}, and removes it"
        )
        safer = "give a `limit` that the longest task keeps"
        return Effect(Verdict.ROLLING, says, why, safer, _RETIREMENT, gone, groups=(group,))
    if scaling:
        says = (
            f"worker group {name} goes if its workers, {there.pods()}, are idle; if one is busy `pulumi up` ends with "
            "an error that names it, and changes nothing of the RayCluster"
        )
    else:
        says = (
            f"worker group {name} goes, and its idle workers of {there.pods()} with it; busy ones run on until an `up` "
            "finds them idle"
        )
    return Effect(Verdict.ROLLING, says, why, _WAIT, _RETIREMENT, gone, groups=(group,))


_SAFER = "do it when nothing runs; or `updates: {strategy: drain}`, which leaves the head, and waits for workers"


def left_behind(before: Known, after: Body, updates: UpdatesSettings, effects: Iterable[Effect]) -> Iterator[Effect]:
    """The effects of `updates` on pods that are older than the live RayCluster, without the pods that end by
    `effects`."""
    if updates.strategy == "none" or by_others(after):
        return
    why = f"`updates: {{strategy: {updates.strategy}}}`, and pods that are older than what the RayCluster says"
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
        says = (
            f"earlier edits have left the head: it and all workers, {ended.pods()}, are deleted at once and made anew"
        )
        yield Effect(Verdict.RECREATES, says, why, _SAFER, REPLACING, ended, ended)
        return
    for name, pods in old.items():
        if name != HEAD or updates.strategy == "immediate":
            yield _of(name, pods, updates, why)


def _unread(before: Known, updates: UpdatesSettings, why: str) -> Iterator[Effect]:
    """For pods that were not read: another strategy may have left some."""
    if updates.strategy == "immediate" and before.updates and before.updates.strategy != "immediate":
        ended = Range(0, all_running(before).most)
        says = f"pods that earlier edits have left as they were, {ended} of them, are deleted at once and made anew"
        yield Effect(Verdict.ENDS, says, why, _SAFER, REPLACING, ended, ended)


def _of(name: str, pods: int, updates: UpdatesSettings, why: str) -> Effect:
    there, whose = range_of(pods, pods), "the head" if name == HEAD else f"worker group {shown(name)}"
    gone = Range(0, pods)
    if updates.strategy == "immediate":
        says = f"earlier edits have left {there.pods()} of {whose}: deleted at once and made anew, busy or not"
        return Effect(Verdict.ENDS, says, why, _SAFER, REPLACING, there, there, (name,))
    if updates.strategy == "drain":
        says = (
            f"earlier edits have left {there.pods()} of {whose}: no new work from now on, replaced when idle, and "
            f"ended after {updates.limit}"
        )
        safer = "give a `limit` that the longest task keeps"
        return Effect(Verdict.ROLLING, says, why, safer, REPLACING, gone, gone, (name,))
    says = f"earlier edits have left {there.pods()} of {whose}: replaced if idle"
    return Effect(Verdict.NEW_PODS, says, why, "", REPLACING, gone, gone, (name,))


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
