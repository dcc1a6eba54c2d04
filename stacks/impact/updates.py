"""What `updates` of a RayCluster do with an edit that KubeRay alone would not apply to pods. Pure functions.

Follows components/rollout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.queues.admission import KUEUE_QUEUE_LABEL
from components.ray_cluster.fault_tolerance import OPTIONS
from components.ray_cluster.scaled import scales
from components.rollout.settings import UpdatesSettings
from components.rollout.templates import recreates

from .effects import Effect, Range, Verdict
from .kuberay_rules import Rule
from .pods import HEAD, groups_of
from .ray_pods import Known, all_running, running_of, shown

Body = Mapping[str, Any]

BY_KUBERAY_ALONE = UpdatesSettings(strategy="none")

REPLACING = "components/rollout/replacing.py"
_RETIREMENT = "components/rollout/retirement.py"
_AT_ONCE = "`updates: {strategy: immediate}` makes the head anew, and ends what runs on the RayCluster; or "
_WAIT = "wait until nothing runs; or set `updates: {strategy: drain}`, and busy workers are waited for"


def reached(before: Known, after: Body, rule: Rule, groups: Sequence[str], updates: UpdatesSettings) -> Effect:
    """The effect on running pods when fields of a rule are edited; `{groups}` in its text stands for `groups`."""
    plain = Effect(rule.verdict, rule.says, rule.reason, rule.safer, rule.source)
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
