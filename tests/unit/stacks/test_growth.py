"""The work of commands grows linearly with the tenants, not with their square: calls of functions are counted, not
seconds."""

import cProfile
import pstats
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks.growth.stack_files import stack_file
from components.ray_cluster import manifests
from core.stack_file import stack_file as read
from stacks.commands.impact.comparison import impact_of
from stacks.commands.impact.report import report as impact_report
from stacks.commands.plan.report import report
from stacks.commands.plan.text import show
from stacks.load import settings_of
from stacks.objects import ray_clusters as rendered
from stacks.planning.plan import plan_of
from stacks.settings import StackSettings

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
