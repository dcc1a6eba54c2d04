"""`python -m stacks plan`: whether stacks fit their nodes and budgets, and what can run at once; offline."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .check import FOUND, MISUSED, stack_path

if TYPE_CHECKING:
    from ..planning.report import Report
    from ..settings import StackSettings


class Format(StrEnum):
    """How a plan is written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    SVG = "svg"


def plan(
    stacks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[STACK or FILE]...", help="DEV for Pulumi.DEV.yaml, or a path. Default: all here."),
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", help="For a terminal, programs, a pull request, a browser; or nodes alone.")
    ] = Format.TEXT,
    price: Annotated[
        float | None, typer.Option("--gpu-hour-price", min=0, help="Of a GPU, for pools that say no gpuHourPrice.")
    ] = None,
    all_stacks: Annotated[
        bool, typer.Option("--all-stacks", help="What the stacks that share a cluster promise together.")
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(
            help="Choose sizes, caps and idle timeouts for the jobs of a CSV: gpus,duration,arrival (seconds)."
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="With --history: NAMESPACE/NAME, where there are several.")
    ] = None,
) -> None:
    """Show whether stacks fit their nodes and budgets, and what can run at once.

    Exit code: 0 it fits, or what does not is no error to the stack; 1 it does not, or a stack file is wrong (see
    `check`); 2 wrong use.
    """
    from ..findings import StackFileError
    from ..planning import sharing
    from ..planning.machine import as_object
    from ..planning.plan import plan_of
    from ..planning.report import report
    from ..settings import load

    paths = [stack_path(each) for each in stacks] if stacks else sorted(Path().glob("Pulumi.*.yaml"))
    if not paths:
        typer.echo("there is no Pulumi.*.yaml here: name a stack or a file", err=True)
        raise typer.Exit(MISUSED)
    if output is Format.SVG and (len(paths) > 1 or all_stacks):
        typer.echo("--format svg draws the nodes of one stack: name one, without --all-stacks", err=True)
        raise typer.Exit(MISUSED)
    if history and (len(paths) > 1 or all_stacks or output is Format.SVG):
        typer.echo("--history is of one stack: name it, without --all-stacks and --format svg", err=True)
        raise typer.Exit(MISUSED)
    try:
        settings = {str(path): load(path) for path in paths}
    except StackFileError as error:
        typer.echo(error, err=True)
        raise typer.Exit(FOUND) from error
    if history:
        _chosen(next(iter(settings.values())), history, cluster, output)
        return
    planned = [(name, said, plan_of(said, price)) for name, said in settings.items()]
    shared = sharing.shared(planned) if all_stacks else []
    if output is Format.JSON:
        found = map(sharing.as_object, shared) if all_stacks else ({"stack": n, **as_object(p)} for n, _, p in planned)
        typer.echo(json.dumps(list(found), indent=2))
    else:
        reports = map(sharing.report, shared) if all_stacks else (report(name, each) for name, _, each in planned)
        _written(list(reports), output)
    strict = [each for each in shared if any(said.capacity.overcommitment == "error" for _, said, _ in each.stacks)]
    if any(each.problems for each in strict):
        raise typer.Exit(FOUND)


def _written(reports: list["Report"], output: Format) -> None:
    if output is Format.TEXT:
        from ..planning.text import show

        show(reports)
    elif output is Format.MARKDOWN:
        from ..planning.text import markdown

        typer.echo(markdown(reports), nl=False)
    elif output is Format.HTML:
        from ..planning.page import html

        typer.echo(html(reports), nl=False)
    else:
        from ..planning.drawing import svg

        typer.echo("".join(svg(each.plan) for each in reports if each.plan), nl=False)


def _chosen(stack: "StackSettings", history: Path, cluster: str | None, output: Format) -> None:
    """Writes what the jobs of a file came to, and would have come to."""
    from ..history.jobs import HistoryError, read
    from ..planning.history import NoSuchClusterError, as_object, compare, report

    try:
        compared = compare(stack, cluster, read(history))
    except (HistoryError, NoSuchClusterError) as error:
        typer.echo(error, err=True)
        raise typer.Exit(MISUSED) from error
    if output is Format.JSON:
        typer.echo(json.dumps(as_object(compared), indent=2))
    else:
        _written([report(compared)], output)
