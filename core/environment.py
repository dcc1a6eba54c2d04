"""Names of the Pulumi stacks of an environment.

An environment is one stack, or it is split. Then the stack of the platform has the name of the environment, and each
group of tenants has a stack such as `prod.tenants-07`. Stack names may contain letters, digits, `-`, `_` and `.`.
"""

import re

_TENANTS = re.compile(r"(?P<environment>.+)\.tenants-(?P<number>\d{2,})")


def environment_of(stack: str) -> str:
    """The environment that a stack belongs to."""
    found = _TENANTS.fullmatch(stack)
    return found["environment"] if found else stack


def group_of(stack: str) -> int | None:
    """Number of the group of tenants in a stack, from 1; None for a stack with the name of its environment."""
    found = _TENANTS.fullmatch(stack)
    return int(found["number"]) if found else None


def tenants_stack(environment: str, group: int) -> str:
    """The stack of a group of tenants."""
    return f"{environment}.tenants-{group:02}"
