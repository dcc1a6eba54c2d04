"""The result of a rehearsal of a stack, and its problems. Pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from local.rehearse.comparison import Beside, Demand, Start
from local.rehearse.observed import Cluster, Observed, Refusal, refused
from stacks.planning.plan import Plan


@dataclass(frozen=True)
class Rehearsed:
    """The result of a stack on a rehearsal cluster."""

    stack: str
    plan: Plan
    seconds: Mapping[str, float]
    """The duration of each step, by its name, in order."""

    found: Observed
    """The cluster once everything was ready, or `up` had failed."""

    errors: tuple[str, ...]
    """The errors of a failed `pulumi up`."""

    start: Start
    demand: Demand | None
    """None: nothing was requested, because not everything had started, or it was not asked for."""

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """All refusals by admission, including the stack's own objects."""
        return (*self.found.refusals, *(Refusal("pulumi up", each) for each in self.errors if refused(each)))

    @property
    def times(self) -> list[float]:
        """Seconds from the creation of each RayCluster until it was ready, of the ready ones."""
        return sorted(each.seconds for each in self.found.clusters if each.ready and each.seconds is not None)

    @property
    def median(self) -> float | None:
        return median(self.times) if self.times else None

    @property
    def slowest(self) -> Cluster | None:
        ready = [each for each in self.found.clusters if each.ready and each.seconds is not None]
        return max(ready, key=lambda each: each.seconds or 0, default=None)

    @cached_property
    def not_ready(self) -> tuple[str, ...]:
        """RayClusters of the stack that are not ready, or do not exist."""
        ready = {each.name for each in self.found.clusters if each.ready}
        planned = [cluster.name for tenant in self.plan.tenants for cluster in tenant.clusters]
        return tuple(name for name in planned if name not in ready)

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """The differences from the plan, as sentences."""
        return tuple(_differences(self))

    @property
    def well(self) -> bool:
        """Whether everything is ready, nothing was refused, and all is as predicted."""
        return not (self.not_ready or self.refusals or self.errors or self.differences)


def _differences(rehearsed: Rehearsed) -> Iterator[str]:
    for each in rehearsed.start.waiting:
        if each.pods.differ:
            yield f"of {each.owner} ({each.group}) {_numbers(each.pods, 'pods wait')}"
    yield from _of("the start, of pool", rehearsed.start.pools)
    yield from _of("the start, of tenant", rehearsed.start.tenants)
    if rehearsed.demand:
        yield from _of("the largest demand, of tenant", rehearsed.demand.tenants)
        yield from (f"the workers of {each} did not settle in time" for each in rehearsed.demand.unsettled)


def _of(when: str, numbers: Mapping[str, Beside]) -> Iterator[str]:
    for name, each in numbers.items():
        if each.differ:
            yield f"at {when} {name} {_numbers(each, 'GPUs are taken')}"


def _numbers(each: Beside, what: str) -> str:
    return f"{each.found} {what}, but the plan predicts {each.predicted}"
