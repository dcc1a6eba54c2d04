"""The result of a rehearsal of a stack, and its problems; as tables and sentences, and for programs. Pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from local.rehearse.comparison import Beside, Demand, Start
from local.rehearse.observed import Cluster, Observed, Refusal, refused
from stacks.commands.plan.report import NONE, Report, Table
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
        planned = [cluster.name for cluster in self.plan.clusters]
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
    yield from _pools_of("the start, of pool", rehearsed.start.pools)
    yield from _pools_of("the start, of tenant", rehearsed.start.tenants)
    if rehearsed.demand:
        yield from _pools_of("the largest demand, of tenant", rehearsed.demand.tenants)
        yield from (f"the workers of {each} did not settle in time" for each in rehearsed.demand.unsettled)


def _pools_of(when: str, numbers: Mapping[str, Beside]) -> Iterator[str]:
    for name, each in numbers.items():
        if each.differ:
            yield f"at {when} {name} {_numbers(each, 'GPUs are taken')}"


def _numbers(each: Beside, what: str) -> str:
    return f"{each.found} {what}, but the plan predicts {each.predicted}"


def report(there: Rehearsed) -> Report:
    """For people."""
    made = [_times(there), _waiting(there), _gpus("pool", there.start.pools), _tenants(there), _refusals(there)]
    title = f"Rehearsal of {there.stack}"
    return Report(title, tuple(table for table in made if table.rows), tuple(_sentences(there)))


def _times(there: Rehearsed) -> Table:
    rows = [(step, f"{seconds:.0f} s") for step, seconds in there.seconds.items()]
    if there.slowest and there.median is not None:
        rows.append(("a RayCluster, median", f"{there.median:.0f} s"))
        rows.append((f"a RayCluster, slowest: {there.slowest.name}", f"{there.slowest.seconds:.0f} s"))
    return Table("Time until ready", ("What", "Time"), tuple(rows))


def _waiting(rehearsed: Rehearsed) -> Table:
    rows = tuple(
        (each.owner, each.group, *_planned_and_found(each.pods), "; ".join(each.reasons) or "no pod was created")
        for each in rehearsed.start.waiting
    )
    return Table("Pods that could not be scheduled", ("RayCluster", "Group", "Plan", "Found", "Why"), rows)


def _gpus(of: str, numbers: Mapping[str, Beside]) -> Table:
    rows = tuple((name, *_planned_and_found(each)) for name, each in numbers.items())
    return Table(f"GPUs taken at the start, by {of}", (of.capitalize(), "Plan", "Found"), rows)


def _tenants(rehearsed: Rehearsed) -> Table:
    asked = rehearsed.demand.tenants if rehearsed.demand else {}
    rows: list[tuple[str, ...]] = [
        (name, *_planned_and_found(each), *(_planned_and_found(asked[name]) if name in asked else (NONE, NONE)))
        for name, each in rehearsed.start.tenants.items()
    ]
    columns = ("Tenant", "At the start: plan", "found", "Maximum, in file order: plan", "found")
    if len(rows) > 1:
        sums = [_sum(rehearsed.start.tenants), _sum(asked)]
        rows.append(("together", *(cell for each in sums for cell in _planned_and_found(each))))
    return Table("GPUs taken, by tenant", columns, tuple(rows))


def _refusals(rehearsed: Rehearsed) -> Table:
    rows = tuple((each.what, each.message) for each in rehearsed.refusals)
    return Table("Refused by admission", ("What", "Why"), rows)


def _sentences(rehearsed: Rehearsed) -> Iterator[str]:
    number = sum(len(tenant.clusters) for tenant in rehearsed.plan.tenants)
    late = rehearsed.not_ready
    yield f"{number - len(late)} of {number} RayClusters are ready{f'; not: {_list(late)}' if late else ''}."
    if not rehearsed.refusals:
        yield "Admission refused nothing."
    yield from (f"pulumi up failed: {each}" for each in rehearsed.errors)
    if rehearsed.demand is None:
        yield "No tenant asked for more than it starts with."
    if rehearsed.differences:
        yield from (f"Not as planned: {each}." for each in rehearsed.differences)
    else:
        yield "All is as the plan predicted."


def as_object(rehearsed: Rehearsed) -> dict[str, Any]:
    """For programs. Keys stay the same; null for unknown values."""
    slowest = rehearsed.slowest
    return {
        "stack": rehearsed.stack,
        "well": rehearsed.well,
        "seconds": {step: round(seconds, 1) for step, seconds in rehearsed.seconds.items()},
        "clusters": [
            {"cluster": each.name, "ready": each.ready, "seconds": each.seconds} for each in rehearsed.found.clusters
        ],
        "median": rehearsed.median,
        "slowest": slowest.name if slowest else None,
        "notReady": list(rehearsed.not_ready),
        "waiting": [
            {"cluster": each.owner, "group": each.group, **_object(each.pods), "reasons": list(each.reasons)}
            for each in rehearsed.start.waiting
        ],
        "refusals": [{"what": each.what, "message": each.message} for each in rehearsed.refusals],
        "errors": list(rehearsed.errors),
        "pools": [{"pool": name, **_object(each)} for name, each in rehearsed.start.pools.items()],
        "tenants": [
            {
                "tenant": name,
                "atFirst": _object(each),
                "inFileOrder": _object(rehearsed.demand.tenants[name]) if rehearsed.demand else None,
            }
            for name, each in rehearsed.start.tenants.items()
        ],
        "differences": list(rehearsed.differences),
    }


def _object(each: Beside) -> dict[str, int]:
    return {"predicted": each.predicted, "found": each.found}


def _planned_and_found(each: Beside | None) -> tuple[str, str]:
    return (str(each.predicted), str(each.found)) if each else (NONE, NONE)


def _sum(numbers: Mapping[str, Beside]) -> Beside | None:
    if not numbers:
        return None
    return Beside(sum(each.predicted for each in numbers.values()), sum(each.found for each in numbers.values()))


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
