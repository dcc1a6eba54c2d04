"""What a tenant adds to the state, which Pulumi writes whole at every step; see docs/provisioning.md."""

import json
from typing import Any

import pytest

from testbed.platform_stack import Edit
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(400)]

RESOURCES = 28
"""Of a tenant with people, a quota and a RayCluster."""

BYTES = 110_000
"""Of their rows, and of what the stack's outputs say of the tenant."""


def tenants(count: int) -> Edit:
    def edit(settings: dict[str, Any]) -> None:
        own = {"admins": ["group:leads"], "users": ["group:people"], "quota": {"gpus": 8, "pods": 40}}
        [first, *_] = settings["tenants"]
        settings["tenants"] = [{**first, **own, "name": f"rows-{number}"} for number in range(count)]

    return edit


def test_a_further_tenant_keeps_to_its_budget(stack_on_operator: MakeStack) -> None:
    stack = stack_on_operator("rows")
    held = []
    try:
        for count in (1, 3):
            stack.edit(tenants(count))
            stack.up()
            held.append(stack.resources())
    finally:
        stack.destroy()
    one, three = held
    resources = (len(three) - len(one)) / 2
    size = (len(json.dumps(three)) - len(json.dumps(one))) / 2
    print(f"a further tenant: {resources:.0f} resources, {size:.0f} bytes")
    assert resources <= RESOURCES, (
        f"{resources:.0f} resources for each tenant, {RESOURCES} are the budget: each is two more writes of the whole "
        "state, so see whether an object can serve all tenants; else raise the budget"
    )
    assert size <= BYTES, (
        f"{size:.0f} bytes of state for each tenant, {BYTES} are the budget: look in `pulumi stack export` for what "
        "nobody reads (docs/provisioning.md says who puts what into a row); else raise the budget"
    )
