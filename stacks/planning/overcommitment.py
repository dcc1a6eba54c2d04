"""Promises of a stack that its nodes cannot provide at the same time. Pure functions."""

from collections.abc import Iterator
from decimal import Decimal

from components.capacity.placement import RESOURCES
from components.queues.budget import on_nodes
from components.tenant.demand import Usage
from core.nodes import GPU_RESOURCE, gpus_of
from core.problems import Path, Problem, few
from core.quantities import shown
from stacks.planning.plan import Plan

SETTING: Path = ("capacity", "overcommitment")
"""The setting that decides how overcommitment is treated."""

MOST_NAMED = 4
"""The number of names in a message."""


def overcommitments(plan: Plan) -> Iterator[Problem]:
    """RayClusters that do not all fit at their start, RayServices that could not be updated, and tenants that may use
    more than the nodes have; none if the stack file allows these."""
    if plan.may_overcommit:
        return
    if plan.left_out and not plan.pools:
        message = "the file has no ray-platform:nodes, so that no pod has room: add your pools of nodes"
        yield Problem(SETTING, None, message, "starts-fit-nodes")
        return
    if plan.left_out:
        where = few([f"{number} of {each.owner} ({each.group})" for each, number in plan.left_out], MOST_NAMED)
        message = (
            f"the nodes have no room for all pods that RayClusters start with: {where} would wait. Add nodes, or let "
            "them start with less"
        )
        yield Problem(SETTING, None, message, "starts-fit-nodes")
    elif waiting := [(name, each, number) for name, some in plan.updates.items() for each, number in some]:
        where = few([f"{number} of {name} ({each.group})" for name, each, number in waiting], MOST_NAMED)
        message = (
            "the nodes have no room for the second RayCluster that a RayService has during an update, while all "
            f"others run what they start with: {where} would wait, and the old version keeps serving. Add nodes, "
            "let the service start with less, or set its upgradeStrategy to None"
        )
        yield Problem(SETTING, None, message, "updates-fit-nodes")
    in_file_order = sum((gpus_of(each.in_file_order) for each in plan.tenants), Decimal(0))
    if beyond := more_than(plan.promised, on_nodes(plan.pools)):
        shares = sorted(plan.tenants, key=lambda each: -gpus_of(each.maximum))
        parts = few([f"{each.settings.name} {_gpus(each.maximum)}" for each in shares], MOST_NAMED)
        message = (
            f"tenants together may use more than the nodes have: {beyond} (GPUs of each: {parts}). Set "
            "quotas or capabilities of queues that fit, or add nodes"
        )
        yield Problem(SETTING, None, message, "promises-fit-nodes")
    elif not plan.left_out and (short := gpus_of(plan.promised) - in_file_order) > 0:
        less = [each for each in plan.tenants if gpus_of(each.in_file_order) < gpus_of(each.maximum)]
        parts = few(
            [f"{each.settings.name} {_gpus(each.in_file_order)} of {_gpus(each.maximum)}" for each in less], MOST_NAMED
        )
        message = (
            f"the nodes have the GPUs that tenants together may use, but no room for {shown(GPU_RESOURCE, short)} of "
            "them beside heads, Redis and workers of other sizes: if tenants grow in the order of the file, they get "
            f"less than they may ({parts} GPUs). Set lower quotas, or add nodes"
        )
        yield Problem(SETTING, None, message, "promises-fit-nodes")


def more_than(promised: Usage, there: Usage) -> str:
    """The promised amounts that exceed the available ones, by resource, for people; empty if none does."""
    return ", ".join(
        f"{resource} {shown(resource, promised[resource])} of {shown(resource, there.get(resource, Decimal(0)))}"
        for resource in dict.fromkeys([*RESOURCES, *there])
        if promised.get(resource, Decimal(0)) > there.get(resource, Decimal(0))
    )


def _gpus(usage: Usage) -> str:
    return shown(GPU_RESOURCE, gpus_of(usage))
