"""The work of commands and the requests to the engine grow linearly with the tenants, not with their square."""

import cProfile
import pstats
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.growth.stack_files import stack_file
from components.ray_cluster import manifests
from core.stack_file import stack_file as read
from stacks.commands.impact.comparison import impact_of
from stacks.commands.impact.report import report as impact_report
from stacks.commands.plan.report import report
from stacks.commands.plan.text import show
from stacks.load import parse, settings_of
from stacks.objects import ray_clusters as rendered
from stacks.planning.plan import plan_of
from stacks.program.build import build
from stacks.settings import StackSettings
from testbed.recorder import Recorder, record

pytestmark = pytest.mark.thorough

TENANTS = (10, 20, 40)

MOST = 1.02
"""The calls for each of the last twenty tenants, divided by those for each of the ten before. It is 1.00; when one part
of a plan copied all nodes for each tenant, it was 1.04."""


def load(tenants: int, queues: bool, edited: bool = False) -> StackSettings:
    text = stack_file(tenants, queues)
    return settings_of(read(Path("Pulumi.large.yaml"), text.replace('"3"', '"edited"') if edited else text))


def check(tenants: int, queues: bool) -> None:
    load(tenants, queues)


def plan(tenants: int, queues: bool) -> None:
    show([report("large", plan_of(load(tenants, queues)))])


def impact(tenants: int, queues: bool) -> None:
    show([impact_report("large", impact_of(load(tenants, queues), load(tenants, queues, edited=True)))])


def calls(command: Callable[[], None]) -> int:
    profile = cProfile.Profile()
    profile.runcall(command)
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return total


@pytest.mark.parametrize("queues", [False, True], ids=["plain", "queues"])
@pytest.mark.parametrize("command", [check, plan, impact])
def test_each_tenant_costs_the_same_as_the_one_before(command: Callable[[int, bool], None], queues: bool) -> None:
    command(TENANTS[0], queues)  # what is made once for all, such as schemas
    few, more, many = (calls(partial(command, tenants, queues)) for tenants in TENANTS)
    before, after = (more - few) / (TENANTS[1] - TENANTS[0]), (many - more) / (TENANTS[2] - TENANTS[1])
    assert after <= MOST * before


@pytest.mark.parametrize(("command", "stacks"), [(check, 1), (plan, 1), (impact, 2)])
def test_each_ray_cluster_is_rendered_once(
    command: Callable[[int, bool], None], stacks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(*args: object) -> dict[str, object]:
        made.append("a body")
        return manifests.ray_cluster(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(rendered, "ray_cluster", counted)
    command(5, True)
    assert len(made) == 5 * stacks


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
