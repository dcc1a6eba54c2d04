"""Names of an environment's Pulumi stacks.

An environment is one stack, or it is split: the platform's stack has the environment's name, and each group of tenants
has a stack whose name says so, `prod.tenants-07`. Stack names may hold letters, digits, `-`, `_` and `.`.
"""

import re

_TENANTS = re.compile(r"(?P<environment>.+)\.tenants-(?P<number>\d{2,})")


def environment_of(stack: str) -> str:
    """The environment that a stack is, or is a part of."""
    found = _TENANTS.fullmatch(stack)
    return found["environment"] if found else stack


def group_of(stack: str) -> int | None:
    """Number of the group of tenants that a stack has, from 1; None for an environment's own stack."""
    found = _TENANTS.fullmatch(stack)
    return int(found["number"]) if found else None


def tenants_stack(environment: str, group: int) -> str:
    """The stack of a group of tenants."""
    return f"{environment}.tenants-{group:02}"
