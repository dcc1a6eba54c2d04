"""What happens to pods that earlier edits left unchanged. Pure functions.

`updates` leave busy pods, or all pods, as they are. A later `up` with another strategy continues with these pods, even
if nothing else is edited. Follows components/rollout/replacing.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from components.ray_cluster.fault_tolerance import OPTIONS
from components.rollout.settings import UpdatesSettings
from components.rollout.templates import parts, stamped

from .effects import Effect, Range, Verdict
from .pods import HEAD, groups_of
from .ray_pods import Known, all_running, range_of, shown
from .updates import REPLACING, by_others

Body = Mapping[str, Any]

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
