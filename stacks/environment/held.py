"""Keeps a stack from deleting what another stack of its environment is to have.

Where the stack file says `split` anew, differently or no longer, resources have to change stacks before the next `up`:
without that one stack would delete tenants, and another could not create them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pulumi

from components.last_state import last_outputs, last_resources
from core.environment import environment_of

from .part import Part
from .rows import ROOT_TYPE, tenants_among, types_in

_SHOWN = 3
"""Names in a message."""


def refuse_foreign(part: Part, stack: str) -> None:
    """Raises pulumi.RunError where the state of a stack holds what belongs to another stack of the environment."""
    if part.groups:
        held = last_resources()
        foreign = [namespace for namespace in tenants_among(held) if not part.has(namespace)]
        before = _split_before(outputs for urn, outputs in held.items() if types_in(urn) == [ROOT_TYPE])
    else:
        foreign = []
        before = _split_before([last_outputs()])
    if foreign or before not in (None, part.groups):
        raise pulumi.RunError(_message(environment_of(stack), stack, part, before, sorted(foreign)))


def _split_before(outputs: Iterable[Mapping[str, Any]]) -> int | None:
    """Into how many groups the environment was split by the last update; None where it had none, or one stack."""
    return next((int(each["split"]) for each in outputs if each.get("split")), None)


def _message(environment: str, stack: str, part: Part, before: int | None, foreign: list[str]) -> str:
    if foreign:
        more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        reason = f"stack {stack} still has {', '.join(foreign[:_SHOWN])}{more}, which belong to other stacks now"
    else:
        now = f"split into {part.groups} stacks" if part.groups else "one stack"
        reason = f"{environment} was split into {before} stacks of tenants, and the stack file says {now}"
    return (
        f"{reason}. Nothing was changed. Run `python -m stacks move-state {environment}`, which moves resources from "
        "state to state and leaves the cluster alone, then this command again"
    )
