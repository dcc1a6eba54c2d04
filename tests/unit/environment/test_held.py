"""A stack with resources that belong to another stack now is not updated."""

from typing import Any

import pulumi
import pytest

from stacks.objects.ownership import Ownership, group_for
from stacks.program.foreign import refuse_foreign
from testbed.recorder import record

TENANTS: dict[str, dict[str, Any]] = {
    f"urn:pulumi:prod::ray-platform::ray-platform:index:Tenant::team-{number}": {} for number in range(5)
}


def refused(
    part: Ownership,
    stack: str = "prod",
    last: dict[str, Any] | None = None,
    rows: dict[str, dict[str, Any]] | None = None,
) -> str:
    """Why a stack is refused; empty if it is not."""
    reasons: list[str] = []

    def program() -> None:
        try:
            refuse_foreign(part, stack, last or {})
        except pulumi.RunError as error:
            reasons.append(str(error))

    record(program, stack=stack, rows=rows)
    return "".join(reasons)


def test_an_environment_that_is_new_or_as_it_was_is_not_refused() -> None:
    assert refused(Ownership()) == ""
    assert refused(Ownership(), last={"clusters": {}}) == ""
    assert refused(Ownership(groups=3)) == ""
    assert refused(Ownership(groups=3), last={"split": 3.0}) == ""


def test_a_stack_with_tenants_of_other_stacks_is_refused_before_it_deletes_them() -> None:
    reason = refused(Ownership(groups=3), rows=TENANTS)
    assert reason.startswith(
        "stack prod still has team-0, team-1, team-2 and 2 more, which belong to other stacks now."
    )
    assert "Run `python -m stacks move-state prod`" in reason


def test_a_group_keeps_its_own_tenants_and_no_others() -> None:
    [first, *_] = TENANTS
    own = group_for("team-0", 3)
    assert refused(Ownership(groups=3, group=own), f"prod.tenants-0{own}", rows={first: {}}) == ""
    other = own % 3 + 1
    reason = refused(Ownership(groups=3, group=other), f"prod.tenants-0{other}", rows={first: {}})
    assert f"stack prod.tenants-0{other} still has team-0, which belong" in reason
    assert "move-state prod`" in reason


@pytest.mark.parametrize(("groups", "now"), [(0, "one stack"), (5, "split into 5 stacks")])
def test_another_number_of_stacks_is_refused_before_anything_is_created_twice(groups: int, now: str) -> None:
    reason = refused(Ownership(groups=groups), last={"split": 3})
    assert f"prod was split into 3 stacks of tenants, and is {now} in the stack file" in reason
