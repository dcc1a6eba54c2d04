"""What an edit changes in GPUs, cost and promises. Pure functions."""

from collections.abc import Iterator
from dataclasses import dataclass

from components.tenant.demand import Usage
from core.nodes import GPU_RESOURCE

from ..planning.overcommitment import overcommitments
from ..planning.plan import Plan, plan_of
from ..planning.report import figure, money
from ..settings import StackSettings

ALL = "all tenants"


@dataclass(frozen=True)
class Amounts:
    """GPUs, and their cost."""

    always: str
    most: str
    cost: str
    """Per hour, from the GPUs that always run to the most; `-` if no price is set."""


@dataclass(frozen=True)
class Figures:
    """The figures of one tenant, or of all together, before and after. None: the tenant does not exist then."""

    whose: str
    before: Amounts | None
    after: Amounts | None


@dataclass(frozen=True)
class Budget:
    """The figures that differ."""

    rows: tuple[Figures, ...] = ()

    promises: tuple[str, ...] = ()
    """What the nodes could provide before, but not any more."""


def budget(before: StackSettings, after: StackSettings, price: float | None = None) -> Budget:
    """The figures that differ, tenant by tenant. `price`: of a GPU in an hour, for pools that set none."""
    was, will = plan_of(before, price), plan_of(after, price)
    had, has = dict(_amounts(was)), dict(_amounts(will))
    rows = (Figures(whose, had.get(whose), has.get(whose)) for whose in dict.fromkeys([*had, *has]))
    known = {problem.message for problem in overcommitments(was)}
    new = (problem.message for problem in overcommitments(will) if problem.message not in known)
    return Budget(tuple(row for row in rows if row.before != row.after), tuple(new))


def _amounts(plan: Plan) -> Iterator[tuple[str, Amounts]]:
    for tenant in plan.tenants:
        yield tenant.settings.name, Amounts(_gpus(tenant.starts), _gpus(tenant.greatest), money(tenant.cost))
    if plan.tenants:
        yield ALL, Amounts(_gpus(plan.started.taken()), _gpus(plan.promised), money(plan.cost))


def _gpus(usage: Usage) -> str:
    return figure({GPU_RESOURCE: usage[GPU_RESOURCE]} if GPU_RESOURCE in usage else {}, GPU_RESOURCE)
