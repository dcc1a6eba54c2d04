"""Measures the first `up` and the preview after it: of this checkout, of another commit, and of a flat Pulumi program
with the same objects, with and without KubeRay's CustomResourceDefinitions in its state.

All use the same plugins, and each has a separate empty control plane with simulated nodes. Pulumi writes the state at
every step, which is its default. The flat program has only the dependencies that its objects require, and does not wait
until RayClusters are ready. The `up` of a flat program is stopped after --slower times the seconds of this checkout, so
that its result is a lower bound.
"""

import contextlib
import itertools
import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer

from benchmarks.page import write_tables
from benchmarks.provisioning.cost import Cost, measured
from benchmarks.provisioning.peers import bodies_of, checked_out, flat, of_checkout, stack_of, state_file
from core.body import Body
from core.nodes import NodePool
from local import paths
from local.plugins import Mode, Selection, select
from local.rehearsal import Rehearsal
from testbed.harness import Project
from testbed.platform_stack import rehearsing

PAGE = paths.ROOT / "docs" / "measurements" / "provisioning.md"

OURS, BEFORE, FLAT, FLAT_WITH = "this checkout", "commit {}", "flat", "flat, with the CRDs"

UP = ("up", "--yes", "--skip-preview")

PREVIEW = ("preview", "--expect-no-changes")

PREVIEWS = 3

PARTS = ("engine", "program", "Kubernetes provider", "dynamic provider", "rest")


@dataclass(frozen=True)
class Row:
    """One program with a number of tenants."""

    tenants: int
    program: str
    up: Cost
    previews: list[Cost]
    """Empty if `up` was stopped."""

    resources: int
    state: int
    """Bytes."""

    @property
    def preview(self) -> float:
        """Median of the CPU seconds."""
        return statistics.median(each.cpu for each in self.previews)


class Benchmark:
    """Runs the programs one after the other."""

    def __init__(self, folder: Path, plugins: Selection, slower: float) -> None:
        """`slower`: stop the `up` of a flat program after this multiple of the seconds of this checkout."""
        self._folder, self._plugins, self._slower = folder, plugins, slower

    def rows(self, tenants: int, before: str | None, flat_programs: bool) -> Iterator[Row]:
        """All programs with this number of tenants."""
        file = self._folder / "stack.yaml"
        pool = stack_of(file, tenants)
        with self._cluster(pool) as cluster:
            project = of_checkout(paths.ROOT, self._new("ours"), cluster, self._plugins, file)
            ours = self._row(tenants, OURS, project)
            bodies = bodies_of(project, cluster)
        yield ours
        if before:
            with checked_out(before, self._folder / "before") as root, self._cluster(pool) as cluster:
                project = of_checkout(root, self._new("before-stack"), cluster, self._plugins, file)
                yield self._row(tenants, BEFORE.format(before), project)
        if flat_programs:
            yield self._flat(tenants, FLAT, pool, bodies, ours, definitions=False)
            yield self._flat(tenants, FLAT_WITH, pool, bodies, ours, definitions=True)

    def _flat(
        self, tenants: int, name: str, pool: NodePool, bodies: list[Body], ours: Row, *, definitions: bool
    ) -> Row:
        with self._cluster(pool) as cluster:
            folder = self._folder / f"{name}-{tenants}"
            project = flat(folder, cluster, self._plugins, bodies, definitions)
            return self._row(tenants, name, project, ours.up.wall * self._slower)

    def _row(self, tenants: int, name: str, project: Project, limit: float = float("inf")) -> Row:
        up = measured(project, *UP, enough=lambda seconds: seconds > limit)
        typer.echo(f"{tenants} tenants, {name}: up {up.wall:.1f} s, CPU {up.cpu:.1f} s {_parts(up)}", err=True)
        previews = [] if up.stopped else [measured(project, *PREVIEW) for _ in range(PREVIEWS)]
        for each in previews:
            typer.echo(f"  preview {each.wall:.1f} s, CPU {each.cpu:.1f} s {_parts(each)} {each.processes}", err=True)
        state = state_file(project)
        resources = json.loads(state.read_text())["checkpoint"]["latest"].get("resources") or []
        return Row(tenants, name, up, previews, len(resources), state.stat().st_size)

    def _cluster(self, pool: NodePool) -> contextlib.AbstractContextManager[Rehearsal]:
        return rehearsing(self._new("run"), pool)

    def _new(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder))


def _parts(cost: Cost) -> str:
    return ", ".join(f"{part} {cost.programs[part]:.1f}" for part in PARTS if part in cost.programs)


def tables(rows: list[Row]) -> Iterator[str]:
    """The measurements, their ratios, and the plot."""
    yield f"On {os.cpu_count()} cores:\n"
    yield "| Tenants | Program | Resources | State | `up` | its CPU | Preview, CPU | engine | program | providers |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        yield _line(row)
    yield "\n| Ratio | |"
    yield "| --- | ---: |"
    yield from _ratios(rows)
    yield from _plot(rows)


def _line(row: Row) -> str:
    more = "> " if row.up.stopped else ""
    cells = [str(row.tenants), row.program, str(row.resources), f"{row.state / 1e6:.2f} MB"]
    cells += [f"{more}{row.up.wall:.0f} s", f"{more}{row.up.cpu:.0f} s"]
    if row.previews:
        programs = [each.programs for each in row.previews]
        engine, program, *providers = (
            statistics.median(each.get(part, 0.0) for each in programs) for part in PARTS[:4]
        )
        cells += [f"{row.preview:.1f} s", f"{engine:.1f} s", f"{program:.1f} s", f"{sum(providers):.1f} s"]
    else:
        cells += ["-"] * 4
    return f"| {' | '.join(cells)} |"


def _ratios(rows: list[Row]) -> Iterator[str]:
    sizes = sorted({row.tenants for row in rows})
    for size in sizes:
        [ours, *others] = [row for row in rows if row.tenants == size]
        for other in others:
            title = f"{size} tenants, this checkout / {other.program}"
            less = "< " if other.up.stopped else ""
            yield f"| {title}: seconds of `up` | {less}{ours.up.wall / other.up.wall:.2f} |"
            yield f"| {title}: CPU of `up` | {less}{ours.up.cpu / other.up.cpu:.2f} |"
            if other.previews:
                yield f"| {title}: CPU of a preview | {ours.preview / other.preview:.2f} |"
    first = {row.tenants: row for row in reversed(rows)}
    for small, large in itertools.pairwise(sizes):
        ratio = (first[large].up.wall / large) / (first[small].up.wall / small)
        yield f"| Seconds of `up` for each tenant, this checkout, {large} tenants / {small} tenants | {ratio:.2f} |"


def _plot(rows: list[Row]) -> Iterator[str]:
    """A bar chart of the seconds of `up`, which GitHub and GitLab render."""
    yield "\n```mermaid"
    yield "xychart-beta"
    yield '    title "Seconds of pulumi up from nothing (a stopped one: at least)"'
    bars = ", ".join(f'"{row.program}, {row.tenants}"' for row in rows)
    yield f"    x-axis [{bars}]"
    yield f"    bar [{', '.join(f'{row.up.wall:.1f}' for row in rows)}]"
    yield "```"


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of tenants, with commas between.")] = "1,20,100",
    before: Annotated[str | None, typer.Option(help="Another commit, measured with the smallest number.")] = None,
    flat_programs: Annotated[bool, typer.Option("--flat/--no-flat", help="Measure the flat programs too.")] = True,
    slower: Annotated[float, typer.Option(help="Stop a flat program after so many times our seconds.")] = 3.0,
    write: Annotated[
        bool, typer.Option("--write", help="Write the tables into docs/measurements/provisioning.md.")
    ] = False,
) -> None:
    """Print or write the tables."""
    numbers = sorted(int(each) for each in sizes.split(","))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Benchmark(Path(folder), select(cast("Mode", os.environ.get("PLUGINS", "auto"))), slower)
        for number in numbers:
            rows += benchmark.rows(number, before if number == numbers[0] else None, flat_programs)
    text = "\n".join(tables(rows))
    typer.echo(text)
    if write:
        write_tables(PAGE, "provisioning", text)


if __name__ == "__main__":
    typer.run(main)
