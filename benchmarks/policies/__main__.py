"""Measures the policies for many resources: in one process, in the process of the pack, and in the engine's preview of
a program with these resources.

The time of the engine itself is that of the same preview with a pack that reports nothing (idle/), because with any
pack the engine serializes every resource once more. The runs alternate. There is no cluster, so that the preview is as
fast as possible. On a machine with other load only CPU seconds are meaningful.
"""

import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, cast

import typer

from benchmarks.cpu import children_cpu
from benchmarks.page import write_tables
from benchmarks.policies.served import Took, asked
from core.body import Body
from local import paths
from local.plugins import Mode, select
from policies.configuration import Configuration
from policies.judge import Judge
from policies.values import Object
from testbed.harness import Project
from testbed.policies import bodies

PAGE = paths.ROOT / "docs" / "measurements" / "policies.md"

PROGRAM = Path(__file__).with_name("program.py")

PACKS: dict[str, Path | None] = {
    "with no pack": None,
    "with a pack that reports nothing": Path(__file__).with_name("idle"),
    "with the pack": paths.ROOT / "policies",
}

KINDS: tuple[Callable[[], Body], ...] = (
    bodies.ray_cluster,
    bodies.ray_job,
    bodies.deployment,
    bodies.pod,
    bodies.cron_job,
    bodies.volcano_job,
    bodies.redis,
    bodies.budget,
    bodies.service,
    bodies.ingress,
    bodies.for_ray,
    bodies.default_deny,
    lambda: bodies.opened(53, 443),
    bodies.role,
    bodies.binding,
    bodies.namespace,
)
"""Cycled through. Seven of sixteen have pod templates, as in a stack with few services and many teams."""

TENANTS = 50

PARTS = {
    "start": "The pack's process: its start",
    "resources": "The pack's process: each resource",
    "stack": "The pack's process: the stack as a whole",
}


def made(count: int) -> list[Body]:
    """This number of objects, spread over namespaces."""
    objects = []
    for number, make in zip(range(count), itertools.cycle(KINDS), strict=False):
        each = make()
        each["metadata"]["name"] = f"it-{number}"
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = f"team-{number // len(KINDS) % TENANTS}"
        objects.append(each)
    return objects


def judged(objects: list[Body], runs: int) -> list[float]:
    """Seconds of each run to judge the objects in this process."""
    took = []
    for _ in range(runs):
        begun = time.perf_counter()
        Judge(Configuration(), "prod").report(Object(each, "urn", protected=False) for each in objects)
        took.append(time.perf_counter() - begun)
    return took


def previewed(objects: list[Body], runs: int) -> dict[str, list[Took]]:
    """Previews of the engine with each pack and without, alternating. The first of each does not count."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project.make(Path(folder), PROGRAM, select(cast("Mode", os.environ.get("PLUGINS", "auto"))))
        file = Path(folder) / "bodies.json"
        file.write_text(json.dumps(objects))
        project.environment |= {"BODIES": str(file), "KUBECONFIG": os.devnull}
        levels = Path(folder) / "levels.json"
        levels.write_text(json.dumps({"all": "advisory"}))
        took: dict[str, list[Took]] = {title: [] for title in PACKS}
        for _ in range(runs + 1):
            for title, pack in PACKS.items():
                took[title].append(_timed(project, pack, levels))
        return {title: each[1:] for title, each in took.items()}


def _timed(project: Project, pack: Path | None, levels: Path) -> Took:
    options = ("--policy-pack", str(pack), "--policy-pack-config", str(levels)) if pack else ()
    before, begun = children_cpu(), time.perf_counter()
    output = project.pulumi("preview", *options).output
    wall, used = time.perf_counter() - begun, children_cpu() - before
    if options and "Policies:" not in output:
        raise RuntimeError(f"the pack was not asked:\n{output[-2000:]}")
    return Took(wall, used)


def table(
    count: int, alone: list[float], served: list[dict[str, Took]], engine: dict[str, list[Took]]
) -> Iterator[str]:
    """The table: medians, minimums and maximums."""
    runs = len(alone)
    yield f"{count} resources of {len(KINDS)} kinds, {runs} runs in turns on {os.cpu_count()} cores:\n"
    yield "| | Median | Least | Most | CPU, median |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    yield f"| Judged in one process | {_seconds(alone)} | |"
    for what, title in PARTS.items():
        yield _row(title, [each[what] for each in served])
    yield _row("**All of the pack's process**", [_sum(each.values()) for each in served])
    for title, took in engine.items():
        yield _row(f"`pulumi preview` {title}", took)
    if engine:
        _, idle, ours = engine.values()
        more = [Took(one.wall - other.wall, one.cpu - other.cpu) for one, other in zip(ours, idle, strict=True)]
        yield _row("**What the pack adds to the engine's own time**", more)


def _row(title: str, took: list[Took]) -> str:
    cpu = statistics.median(each.cpu for each in took)
    return f"| {title} | {_seconds([each.wall for each in took])} | {cpu:.2f} s |"


def _sum(took: Iterable[Took]) -> Took:
    parts = list(took)
    return Took(sum(each.wall for each in parts), sum(each.cpu for each in parts))


def _seconds(took: list[float]) -> str:
    return " | ".join(f"{each:.2f} s" for each in (statistics.median(took), min(took), max(took)))


def main(
    resources: Annotated[int, typer.Option(min=1, help="Resources of the program.")] = 1000,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 5,
    engine: Annotated[bool, typer.Option(help="Preview a program with the engine too.")] = True,
    at_most: Annotated[float | None, typer.Option(help="Fail where the pack's process takes more CPU seconds.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the table into docs/measurements/policies.md.")] = False,
) -> None:
    """Print or write the table."""
    objects = made(resources)
    alone, served = judged(objects, runs), [asked(objects) for _ in range(runs)]
    text = "\n".join(table(resources, alone, served, previewed(objects, runs) if engine else {}))
    typer.echo(text)
    if write:
        write_tables(PAGE, "policies", text)
    cpu = statistics.median(_sum(each.values()).cpu for each in served)
    if at_most is not None and cpu > at_most:
        sys.exit(f"the pack takes {cpu:.2f} s; at most {at_most} are allowed")


if __name__ == "__main__":
    typer.run(main)
