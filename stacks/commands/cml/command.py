"""`ray-platform cml`: starts, stops and shows the Ray clusters of a stack on Cloudera ML."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Stack, ending, stack_path
from stacks.commands.status.command import Format, failing

if TYPE_CHECKING:
    from stacks.commands.cml.clusters import CmlCluster
    from stacks.commands.status.cml import CmlStatus

cml = typer.Typer(no_args_is_help=True, help="Start, stop and show Ray clusters on Cloudera ML.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A Ray cluster of ray-platform:cml.")]
Output = Annotated[Format, typer.Option("--format", help="For a terminal, or for programs.")]


@cml.command()
def start(stack: Stack, name: Name, output: Output = Format.TEXT) -> None:
    """Start a cluster that `stop` has stopped, as the last `up` made it, and wait until its workers have joined.

    Also replaces what has failed. Needs the state of the stack, and the key of Cloudera ML.

    Exit code: 0 it is ready; 1 it is not, with the reason; 2 wrong use, an invalid file, or the state cannot be read;
    130 interrupted.
    """
    with _acting(stack, name) as cluster:
        found = cluster.start_cluster(_progress)
    _show([found], output)
    if not found.ok:
        raise typer.Exit(FOUND)


@cml.command()
def status(
    stack: Stack,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A cluster. Default: all.")] = None,
    output: Output = Format.TEXT,
) -> None:
    """Show clusters on Cloudera ML with all their applications.

    Exit code: 0 everything is as the stack file says; 1 something is not, or cannot be read, with the reason; 2 wrong
    use or an invalid file; 130 interrupted.
    """
    with failing():
        from stacks.commands.cml.clusters import CmlCluster, all_clusters
        from stacks.commands.recover.cli import PulumiError
        from stacks.commands.status.targets import NoSuchTargetError

        file = stack_path(stack)
        if not (clusters := [CmlCluster(file, name)] if name else all_clusters(file)):
            raise NoSuchTargetError(f"{file} has no Ray clusters on Cloudera ML: add them to ray-platform:cml")
        with ending(MISUSED, PulumiError):
            found = [each.get_status() for each in clusters]
    _show(found, output)
    if not all(each.ok for each in found):
        raise typer.Exit(FOUND)


@cml.command()
def stop(stack: Stack, name: Name, output: Output = Format.TEXT) -> None:
    """Stop a cluster: delete its applications, busy workers once they have ended their tasks.

    Waits for `drainTimeout`, and fails if tasks still run then. Needs the state of the stack, and the key of Cloudera
    ML. Stack file and state stay. `start` and the next `up` start it again; `suspend: true` in the stack file keeps it
    stopped.

    Exit code: 0 nothing of it runs; 1 something does, with the reason; 2 wrong use, an invalid file, or the state
    cannot be read; 130 interrupted.
    """
    with _acting(stack, name) as cluster:
        cluster.stop_cluster(_progress)
        found = cluster.get_status()
    _show([found], output)


@cml.command()
def monitor(
    stack: Stack,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Its files are written again.")],
) -> None:
    """Write the files with which a Prometheus scrapes the clusters on Cloudera ML, and raises alerts.

    `scrape.yaml` and `rules.yaml`, the key of each cluster's metrics, and the authority in `caFile`. Needs the state of
    the stack.

    Exit code: 0 written; 1 a cluster is not in the state, or the folder cannot be written; 2 wrong use, an invalid
    file, or the state cannot be read; 130 interrupted.
    """
    with failing():
        from stacks.commands.cml.clusters import NotStartedError
        from stacks.commands.cml.monitoring import write
        from stacks.commands.recover.cli import PulumiError

        with ending(FOUND, NotStartedError, OSError, ValueError), ending(MISUSED, PulumiError):
            names = write(stack_path(stack), folder)
    typer.echo(f"{folder}: metrics and alerts of {', '.join(names)}")


@contextmanager
def _acting(stack: str, name: str) -> "Iterator[CmlCluster]":
    with failing():
        from components.cml.client import CmlError
        from stacks.commands.cml.clusters import CmlCluster, NotStartedError
        from stacks.commands.recover.cli import PulumiError

        with ending(FOUND, CmlError, NotStartedError), ending(MISUSED, PulumiError):
            yield CmlCluster(stack_path(stack), name)


def _progress(line: str) -> None:
    typer.echo(line, err=True)


def _show(found: "Sequence[CmlStatus]", output: Format) -> None:
    from stacks.commands.status.report import applications_of_cml, cml_as_object, section_of_cml

    if output is Format.JSON:
        typer.echo(json.dumps([cml_as_object(each) for each in found], indent=2))
        return
    from stacks.commands.status.text import open_console, table_lines

    console, section = open_console(), section_of_cml(found)
    applications = applications_of_cml(found)
    for number, table in enumerate((*section.tables, *([applications] if applications.rows else []))):
        for line in (*([""] if number else []), *table_lines(table, console.width)):
            console.print(line)
    for reason in section.reasons:
        console.print(f"- {reason}")
