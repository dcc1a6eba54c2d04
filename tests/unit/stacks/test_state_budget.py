"""The requests to the engine grow linearly with the tenants. tests/engine/test_state.py counts what stays in the state,
and what the cluster adds."""

import sys
from pathlib import Path
from typing import Any

import pytest

from stacks.load import parse
from stacks.program.build import build
from testbed.recorder import Recorder, record

pytestmark = pytest.mark.thorough

BYTES_OF_A_TENANT = 45_000
"""The requests for a tenant with people, a quota, a RayCluster, and a Role of the operator in its namespace."""

CLUSTER = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "a100"}}


def stack(tenants: int) -> dict[str, Any]:
    """The operator only watches the tenants' namespaces, so that it has objects in each."""
    names = [f"team-{number:02}" for number in range(tenants)]
    own = {"admins": ["group:leads"], "users": ["group:people"], "quota": {"gpus": 8}, "clusters": [CLUSTER]}
    return {
        "operator": {"location": "config/default", "watchNamespaces": names},
        "nodes": [{"pool": "a100", "count": 40, "cpu": 64, "memory": "1000Gi", "gpus": 8}],
        "tenants": [{"name": name, **own} for name in names],
    }


def built(tenants: int) -> Recorder:
    return record(lambda: build(parse(stack(tenants))))


def test_each_further_tenant_costs_the_same_as_the_ones_before(kubectl_that_renders: Path) -> None:
    few, more, most = (sum(built(tenants).sizes) for tenants in (2, 6, 10))
    assert most - more == pytest.approx(more - few, rel=0.01), (
        "the rows of a tenant grow with the number of tenants: something depends on a component, and so on each "
        "resource below it; use components.state.whole"
    )
    each = (most - more) / 4
    assert each <= BYTES_OF_A_TENANT, (
        f"{each:.0f} bytes for each tenant, {BYTES_OF_A_TENANT} are the budget: look in the requests for URNs, stack "
        "traces and fields that nobody reads; raise the budget where the tenant has something new that is worth it"
    )


def test_no_resource_carries_a_stack_trace(kubectl_that_renders: Path) -> None:
    assert built(1).stack_traces == []
    assert not hasattr(sys, "tracebacklimit"), "the program's own errors must have their stack traces"
