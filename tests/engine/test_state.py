"""The share of a tenant in the state, which Pulumi writes completely at every step.

See docs/decisions/0029-small-rows.md.
"""

import json
from typing import Any

import pytest

from testbed.platform_stack import Edit
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(400)]

RESOURCES = 23
"""Number of resources of a tenant with people, a quota and a RayCluster."""

BYTES = 95_000
"""Size of their rows, and of the tenant in the stack's outputs."""


def tenants(count: int) -> Edit:
    def edit(settings: dict[str, Any]) -> None:
        own = {"admins": ["group:leads"], "users": ["group:people"], "quota": {"gpus": 8, "pods": 40}}
        [first, *_] = settings["tenants"]
        settings["tenants"] = [{**first, **own, "name": f"rows-{number}"} for number in range(count)]

    return edit


def test_a_further_tenant_stays_within_its_budget(stack_on_operator: MakeStack) -> None:
    stack = stack_on_operator("rows")
    held = []
    for count in (1, 3):
        stack.edit(tenants(count))
        stack.up()
        held.append(stack.resources())
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
        "nobody reads (docs/decisions/0029-small-rows.md explains the content of a row); else raise the budget"
    )
