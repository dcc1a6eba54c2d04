"""Brings the state of a stack in line with the cluster, at whatever point a command was killed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from . import deployment as state
from .cli import Cli, PulumiError
from .deployment import Json, Wanted
from .live import Existing, look
from .lock import Holder, LockedError, release


class ForeignObjectsError(Exception):
    """Objects that the stack is about to create exist, and it did not create them; the text names them."""


@dataclass(frozen=True)
class Finding:
    """The results of examining a stack after a killed command."""

    deployment: Json
    steps: Sequence[Json]

    existing: Existing
    """Of the objects that are not in the state."""

    @property
    def pending(self) -> list[Json]:
        """Operations that were begun and not completed."""
        return state.pending(self.deployment)

    @property
    def stale(self) -> list[str]:
        """URNs of resources whose row in the state may differ from the cluster."""
        return state.unsettled(self.deployment)

    @property
    def incomplete(self) -> bool:
        """Whether a repair can reveal more: objects whose names depend on the found ones."""
        return bool(self.existing.own) and state.has_unknown(self.steps)

    @property
    def sound(self) -> bool:
        """Whether the state needs no repair."""
        return not (self.existing.own or self.pending or self.stale)


def examine(pulumi: Cli) -> Finding:
    """Looks for what a killed command left behind. Changes nothing.

    Raises PulumiError, also if the state cannot be read; ClusterUnreachableError.
    """
    deployment, steps = pulumi.deployment(), pulumi.previewed()
    existing = Existing()
    for context, objects in _by_context(state.missing(deployment, steps), deployment, steps):
        existing += look(context, objects)
    return Finding(deployment, steps, existing)


def repair(pulumi: Cli, finding: Finding, *, elsewhere: bool = False) -> list[Holder]:
    """Adds the stack's own objects to its state, removes pending operations, and refreshes resources that may have
    changed.

    `elsewhere`: also removes the lock of a process on another machine, which cannot be checked from here.

    Returns the ended processes whose lock was removed. Raises PulumiError; LockedError if somebody is or may be working
    on the stack; ForeignObjectsError, after the state was repaired, if `pulumi up` cannot succeed.
    """
    if pulumi.deployment() != finding.deployment:
        raise LockedError(f"somebody else has just changed the state of stack {pulumi.stack!r}: run this command again")
    own = finding.existing.own
    whole = state.completed(finding.deployment, finding.steps, own)
    released: list[Holder] = []
    try:
        # Also if the state needs no repair: refreshing needs the lock.
        pulumi.set_deployment(whole)
    except PulumiError as error:
        released = release(pulumi, error, elsewhere=elsewhere)
        pulumi.set_deployment(whole)
    if read := sorted({wanted.urn for wanted in own} | set(finding.stale)):
        pulumi.output("refresh", "--yes", "--skip-preview", *(f"--target={urn}" for urn in read))
    if finding.existing.others or finding.existing.leaving:
        raise ForeignObjectsError("\n".join(_in_the_way(pulumi.stack, finding.existing)))
    return released


def _by_context(
    missing: Sequence[Wanted], deployment: Json, steps: Sequence[Json]
) -> Iterator[tuple[str | None, list[Wanted]]]:
    """The objects by the context of the kubeconfig in their provider."""
    rows: dict[str, Any] = {step["urn"]: step["newState"] for step in steps if step.get("newState")}
    rows |= {row["urn"]: row for row in deployment.get("resources") or ()}

    def context(each: Wanted) -> str:
        provider = rows.get(str(each.row.get("provider") or "").rpartition("::")[0]) or {}
        return str((provider.get("inputs") or {}).get("context") or "")

    for name, objects in groupby(sorted(missing, key=context), context):
        yield name or None, list(objects)


def _in_the_way(stack: str, existing: Existing) -> Iterator[str]:
    for wanted, managers in existing.others:
        yield (
            f"{wanted} exists, and stack {stack!r} did not make it (field managers: {managers}). Delete it, give it "
            "another name in the stack file, or take it in: `pulumi import`, for a RayCluster `python -m stacks adopt`"
        )
    for wanted in existing.leaving:
        yield f"{wanted} is being deleted: run this command again once it is gone"
