"""Measures the CPU seconds of `check`, `plan` and `impact` for stack files of 10, 100 and 1,000 tenants.

The peer reads the file with PyYAML's parser in Python and validates it against the JSON Schema for editors. It is
linear and runs beside each command, so that the ratio to it shows the growth of a command regardless of other load.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.cpu import children_cpu
from benchmarks.growth.stack_files import stack_file
from benchmarks.page import write_tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measurements" / "large-stack-files.md"

PEER = """
import json, sys, jsonschema_rs, yaml
schema = json.load(open("stack-file.schema.json"))
assert not list(jsonschema_rs.validator_for(schema).iter_errors(yaml.safe_load(open(sys.argv[1]))))
"""

EDIT = ('"3"', '"edited"')
"""An edit of one variable in the environment of one RayCluster, which `impact` has to find."""

COLUMNS = ("Command", "Tenants", "CPU s", "ms for each tenant", "of the peer's")


def main(
    tenants: Annotated[list[int] | None, typer.Option(help="Sizes of stacks. Default: 10, 100, 1000.")] = None,
    runs: Annotated[int, typer.Option(help="Runs of each, of which the best counts.")] = 3,
    write: Annotated[
        bool, typer.Option("--write", help="Write the table into docs/measurements/large-stack-files.md.")
    ] = False,
) -> None:
    """Print a table of the CPU seconds, for each command and size, without and with queues and Redis."""
    text = "\n\n".join(_section(queues, tenants or [10, 100, 1000], runs) for queues in (False, True))
    typer.echo(text)
    if write:
        write_tables(PAGE, "growth", text)


def _section(queues: bool, sizes: list[int], runs: int) -> str:
    title = "Each tenant with a RayCluster, a quota and people" + (
        "; a queue of Volcano's, and Redis" if queues else ""
    )
    rows = [row for size in sizes for row in _rows(size, queues, runs)]
    lines = [" | ".join(cells) for cells in (COLUMNS, ("---", *["---:"] * (len(COLUMNS) - 1)), *rows)]
    return "\n".join([f"{title}:", "", *(f"| {line} |" for line in lines)])


def _rows(tenants: int, queues: bool, runs: int) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        before, after = (Path(folder) / f"Pulumi.{name}.yaml" for name in ("before", "after"))
        before.write_text(stack_file(tenants, queues))
        after.write_text(stack_file(tenants, queues).replace(*EDIT))
        commands = {
            "check": ["-m", "stacks", "check", str(before)],
            "plan": ["-m", "stacks", "plan", str(before)],
            "impact": ["-m", "stacks", "impact", "--from", str(before), "--to", str(after)],
        }
        peer = _best(["-c", PEER, str(before)], runs)
        found = {name: _best(command, runs) for name, command in commands.items()}
    return [
        (name, str(tenants), f"{took:.2f}", f"{1000 * took / tenants:.1f}", f"{took / peer:.2f}")
        for name, took in found.items()
    ]


def _best(command: list[str], runs: int) -> float:
    return min(_cpu_seconds(command) for _ in range(runs))


def _cpu_seconds(command: list[str]) -> float:
    """User and system CPU seconds of a Python process."""
    before = children_cpu()
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return children_cpu() - before


if __name__ == "__main__":
    typer.run(main)
