"""Prevents a stack from deleting resources that belong to another stack of its environment.

If the stack file adds, changes or removes `split`, resources have to move between stacks before the next `up`.
Otherwise one stack would delete tenants, and another could not create them.
"""

from __future__ import annotations

import pulumi

from components.state import Outputs, last_resources
from core.environment import environment_of
from stacks.commands.environment.state_move import tenants_among
from stacks.objects.ownership import Ownership

_SHOWN = 3
"""Number of names in a message."""


def refuse_foreign(part: Ownership, stack: str, last: Outputs) -> None:
    """Raises pulumi.RunError if the state of a stack contains resources of another stack of the environment.

    `last`: the stack's outputs of its last update (components.state.last_outputs).
    """
    held = tenants_among(last_resources()) if part.groups else ()
    foreign = [namespace for namespace in held if not part.has(namespace)]
    # The number of groups at the last update; None if there was none, or the environment was one stack.
    before = int(last["split"]) if last.get("split") else None
    if foreign or before not in (None, part.groups):
        raise pulumi.RunError(_message(environment_of(stack), stack, part, before, sorted(foreign)))


def _message(environment: str, stack: str, part: Ownership, before: int | None, foreign: list[str]) -> str:
    if foreign:
        more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        reason = f"stack {stack} still has {', '.join(foreign[:_SHOWN])}{more}, which belong to other stacks now"
    else:
        now = f"split into {part.groups} stacks" if part.groups else "one stack"
        reason = f"{environment} was split into {before} stacks of tenants, and is {now} in the stack file"
    return (
        f"{reason}. Nothing was changed. Run `ray-platform move-state {environment}`, which moves resources from "
        "state to state and leaves the cluster alone, then this command again"
    )
