"""Prints the tables of docs/measurements/edit-sequences.md, or writes them there."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from benchmarks.page import write_tables
from core.nodes import NodePool
from local.plugins import Mode, select
from testbed.edits.rounds import Rounds, Tally
from testbed.platform_stack import Stack, install_operator, on_operator, rehearsing

PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "edit-sequences.md"

POOL = NodePool(pool="a100", count=32, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB")
"""It has more room than all workers of a round need."""

STRATEGIES = {
    "onIdle": "`onIdle`",
    "drain": "`drain`",
    "immediate": "`immediate`",
    "none": "`none`",
    "removed": "the RayCluster is removed",
}


def played(sequences: int, clusters: int, edits: int, seed: int) -> Tally:
    """Runs all rounds on a separate control plane."""
    with tempfile.TemporaryDirectory() as folder, rehearsing(Path(folder) / "run", POOL) as cluster:
        install_operator(cluster)
        place = Path(folder)
        plugins = select(cast("Mode", os.environ.get("PLUGINS", "auto")))
        stack = Stack("edits", place, cluster, plugins, original=on_operator(place / "original.yaml"))
        stack.edit(_with_all_nodes)
        rounds, begun = Rounds(stack, cluster.client(), seed), time.monotonic()
        for number, first in enumerate(range(0, sequences, clusters)):
            for line in rounds.run(number, min(clusters, sequences - first), edits):
                typer.echo(f"{time.monotonic() - begun:6.0f} s  round {number}: {line}")
    return rounds.tally


def _with_all_nodes(settings: dict[str, Any]) -> None:
    settings["nodes"][0]["count"] = POOL.count


def tables(tally: Tally, seed: int) -> Iterator[str]:
    """The tables of a tally."""
    yield f"Seed {seed}: {tally.sequences} RayClusters, {tally.edits.total()} edits, {tally.ups} times `pulumi up`.\n"
    yield "| `updates` | Edits | Busy workers | ended, as `impact` had predicted | ended otherwise |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    otherwise = {name: sum(f"updates {name}" in each for each in tally.unpredicted) for name in STRATEGIES}
    for name, title in STRATEGIES.items():
        numbers = (tally.edits[name] or "-", tally.busy[name], tally.ended[name], otherwise[name])
        yield f"| {title} | {' | '.join(map(str, numbers))} |"
    yield "\n| Meanwhile | |"
    yield "| --- | ---: |"
    yield f"| Times that autoscalers scaled | {tally.patches} |"
    yield f"| Updates of a RayCluster refused, because its autoscaler scaled in that moment | {tally.scaled} |"
    yield f"| Edits refused, because a removed worker group has workers that may be busy | {tally.kept} |"
    yield f"| Edits refused before anything was sent, because they are wrong | {tally.wrong} |"
    yield f"| Numbers of workers that were set back | {len(tally.set_back)} |"
    yield "| Differences in the preview after an `up` | 0 |"


def main(
    sequences: Annotated[int, typer.Option(min=1, help="RayClusters, each with a sequence of its own.")] = 100,
    edits: Annotated[int, typer.Option(min=1, help="Edits of each.")] = 4,
    clusters: Annotated[int, typer.Option(min=1, help="RayClusters side by side in the stack.")] = 25,
    seed: Annotated[int, typer.Option(help="Another one draws other edits.")] = 1,
    write: Annotated[
        bool, typer.Option("--write", help="Write the tables into docs/measurements/edit-sequences.md.")
    ] = False,
) -> None:
    """Print or write the tables. Ends with 1 where a busy worker was lost that impact had not named."""
    tally = played(sequences, clusters, edits, seed)
    text = "\n".join(tables(tally, seed))
    typer.echo(text)
    if write:
        write_tables(PAGE, "edits", text)
    for line in (*tally.unpredicted, *tally.set_back):
        typer.echo(line, err=True)
    if tally.unpredicted:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
