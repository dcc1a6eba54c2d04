"""Prints the tables of docs/measurements/worker-sizes.md, or writes them there."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.page import write_tables
from benchmarks.variants.clusters import CLUSTERS, MORE_SIZES, ray_cluster
from benchmarks.variants.jobs import philly, trace
from benchmarks.variants.multisets import exact
from benchmarks.variants.ray_scheduler import RaysAutoscaler
from benchmarks.variants.whole_nodes import held_by_nodes
from stacks.commands.plan.history.jobs import Job
from stacks.commands.plan.history.replay import Played, play

PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "worker-sizes.md"

SEEDS = (1, 2, 3)
COUNTS = (500, 1000, 2000)
_NODES = 400
"""More than any cluster needs: no job waits for a node."""


@dataclass(frozen=True)
class Result:
    """A cluster and jobs; amounts as multiples of the GPU-hours that jobs use."""

    pods: float
    spread: float
    packed: float
    played: Played


def result(name: str, jobs: Sequence[Job]) -> Result:
    """Replays the jobs on that cluster."""
    played = play(RaysAutoscaler(ray_cluster(CLUSTERS[name], _NODES)), jobs)
    spread, packed = (held_by_nodes(played.workers, packed=each) / played.used for each in (False, True))
    return Result(played.held / played.used, spread, packed, played)


def workloads(traced: Path | None, of_trace: int) -> Iterator[tuple[str, list[list[Job]]]]:
    """Titles, each with the jobs of every seed."""
    for count in COUNTS:
        yield f"Philly mix, {count} jobs", [philly(seed, count, 60.0) for seed in SEEDS]
    yield "Philly mix, 1000 short jobs (seconds for minutes)", [philly(seed, 1000, 1.0) for seed in SEEDS]
    if traced:
        jobs = trace(traced, of_trace)
        yield f"{traced.name}, the first {len(jobs)} jobs", [jobs]


def rows(title: str, seeds: Sequence[Sequence[Job]]) -> Iterator[str]:
    """A table of the clusters."""
    yield f"{title}:\n"
    yield "| Workers | Pods | Nodes, spread | Nodes, packed | of all-8 | Mean wait | p95 | Launched | Cannot run |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    whole = [result("all-8", jobs).packed for jobs in seeds]
    for name in CLUSTERS:
        found = [result(name, jobs) for jobs in seeds]
        ratios = [each.packed / other for each, other in zip(found, whole, strict=True)]
        beyond = max(each.played.infeasible_used / (each.played.infeasible_used + each.played.used) for each in found)
        cells = [
            _range([each.pods for each in found]),
            _range([each.spread for each in found]),
            _range([each.packed for each in found]),
            _range(ratios),
            f"{statistics.mean(statistics.mean(each.played.waits) for each in found):.0f} s",
            f"{max(each.played.p95 for each in found):.0f} s",
            f"{statistics.mean(len(each.played.workers) for each in found):.0f}",
            f"{beyond:.0%}" if beyond else "-",
        ]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""


def of_multisets() -> Iterator[str]:
    """A table of launches for tasks that arrive together."""
    yield "| Workers | tasks of 1, 2, 4, 8 GPUs | tasks of 1 to 8 GPUs |"
    yield "| --- | ---: | ---: |"
    for name in ("all-8", "ado", "tiling", *MORE_SIZES):
        workers = {**CLUSTERS, **MORE_SIZES}[name]
        yield f"| {name} | {exact(workers, (1, 2, 4, 8)):.0%} | {exact(workers, range(1, 9)):.0%} |"
    yield ""


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def main(
    traced: Annotated[Path | None, typer.Option("--trace", help="CSV of gpus,duration,arrival, or openb's.")] = None,
    of_trace: Annotated[int, typer.Option(min=1, help="Jobs of the trace.")] = 1000,
    write: Annotated[
        bool, typer.Option("--write", help="Write the tables into docs/measurements/worker-sizes.md.")
    ] = False,
) -> None:
    """Print or write the tables."""
    lines = [line for title, seeds in workloads(traced, of_trace) for line in rows(title, seeds)]
    text = "\n".join([*lines, *of_multisets()])
    if not write:
        typer.echo(text)
        return
    write_tables(PAGE, "variants", text)


if __name__ == "__main__":
    typer.run(main)
