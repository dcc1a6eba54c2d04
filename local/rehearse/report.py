"""The result of a rehearsal as tables and sentences, and for programs."""

from collections.abc import Iterator, Mapping
from typing import Any

from local.rehearse.comparison import Beside
from local.rehearse.rehearsed import Rehearsed
from stacks.commands.plan.report import NONE, Report, Table


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
        (each.owner, each.group, *_beside(each.pods), "; ".join(each.reasons) or "no pod was created")
        for each in rehearsed.start.waiting
    )
    return Table("Pods that could not be scheduled", ("RayCluster", "Group", "Plan", "Found", "Why"), rows)


def _gpus(of: str, numbers: Mapping[str, Beside]) -> Table:
    rows = tuple((name, *_beside(each)) for name, each in numbers.items())
    return Table(f"GPUs taken at the start, by {of}", (of.capitalize(), "Plan", "Found"), rows)


def _tenants(rehearsed: Rehearsed) -> Table:
    asked = rehearsed.demand.tenants if rehearsed.demand else {}
    rows: list[tuple[str, ...]] = [
        (name, *_beside(each), *(_beside(asked[name]) if name in asked else (NONE, NONE)))
        for name, each in rehearsed.start.tenants.items()
    ]
    columns = ("Tenant", "At the start: plan", "found", "Greatest, in turn: plan", "found")
    if len(rows) > 1:
        sums = [_sum(rehearsed.start.tenants), _sum(asked)]
        rows.append(("together", *(cell for each in sums for cell in _beside(each))))
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
                "inTurn": _object(rehearsed.demand.tenants[name]) if rehearsed.demand else None,
            }
            for name, each in rehearsed.start.tenants.items()
        ],
        "differences": list(rehearsed.differences),
    }


def _object(each: Beside) -> dict[str, int]:
    return {"predicted": each.predicted, "found": each.found}


def _beside(each: Beside | None) -> tuple[str, str]:
    return (str(each.predicted), str(each.found)) if each else (NONE, NONE)


def _sum(numbers: Mapping[str, Beside]) -> Beside | None:
    if not numbers:
        return None
    return Beside(sum(each.predicted for each in numbers.values()), sum(each.found for each in numbers.values()))


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
