"""`ray-platform plan`: whether stacks fit their nodes and budgets, and what can run at the same time; offline."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Files, Price, ended, ending, stack_paths

if TYPE_CHECKING:
    from stacks.commands.plan.history.jobs import Job
    from stacks.commands.plan.report import Report
    from stacks.settings import StackSettings

LIVE = "live"
"""The word that selects the live RayCluster."""


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    SVG = "svg"


def plan(
    stacks: Files = None,
    output: Annotated[
        Format, typer.Option("--format", help="For a terminal, programs, a pull request, a browser; or nodes alone.")
    ] = Format.TEXT,
    price: Price = None,
    all_stacks: Annotated[
        bool, typer.Option("--all-stacks", help="What the stacks that share a cluster promise together.")
    ] = False,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="FILE or live",
            help="Choose sizes, caps and idle timeouts for jobs: those of a CSV file (gpus,duration,arrival, in "
            "seconds), or those that the live RayCluster's Ray reports.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="With --history live: a CSV file. The live jobs are added to it, and all its jobs are used."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="With --history: NAMESPACE/NAME of the RayCluster, if there are several.")
    ] = None,
) -> None:
    """Show whether stacks fit their nodes and budgets, and what can run at once.

    Exit code: 0 also where it reports overcommitment; 1 if a stack with `overcommitment: error` does not fit, or a
    stack file is invalid (see `check`); 2 wrong use.
    """
    from core.problems import StackFileError
    from stacks.commands.plan.report import as_object, report, with_cml
    from stacks.load import load
    from stacks.planning import sharing
    from stacks.planning.plan import plan_of

    paths = stack_paths(stacks)
    if output is Format.SVG and (len(paths) > 1 or all_stacks):
        raise ended("--format svg draws the nodes of one stack: name one, without --all-stacks", MISUSED)
    if history and (len(paths) > 1 or all_stacks or output is Format.SVG):
        raise ended("--history is for one stack: name it, without --all-stacks and --format svg", MISUSED)
    if save and history != LIVE:
        raise ended("--save is for --history live: a file is not saved into another", MISUSED)
    with ending(FOUND, StackFileError):
        settings = {str(path): load(path) for path in paths}
    if history:
        _chosen(next(iter(settings.values())), history, save, cluster, output)
        return
    planned = [(name, stack_settings, plan_of(stack_settings, price)) for name, stack_settings in settings.items()]
    shared = sharing.shared(planned) if all_stacks else []
    if output is Format.JSON:
        found = (
            map(sharing.as_object, shared)
            if all_stacks
            else ({"stack": n, **as_object(p), **_on_cml(s, price)} for n, s, p in planned)
        )
        typer.echo(json.dumps(list(found), indent=2))
    else:
        reports = (
            map(sharing.report, shared)
            if all_stacks
            else (with_cml(report(name, each), stack, price) for name, stack, each in planned)
        )
        _written(list(reports), output)
    for each in shared:
        strict = any(stack.capacity.overcommitment == "error" for _, stack, _ in each.stacks)
        if strict and each.problems:
            raise typer.Exit(FOUND)


def _on_cml(stack: "StackSettings", price: float | None) -> dict[str, object]:
    from stacks.commands.plan.report import cml_as_objects

    return {"cml": found} if (found := cml_as_objects(stack, price)) else {}


def _written(reports: list["Report"], output: Format) -> None:
    if output is Format.TEXT:
        from stacks.commands.plan.text import show

        show(reports)
    elif output is Format.MARKDOWN:
        from stacks.commands.plan.text import markdown

        typer.echo(markdown(reports), nl=False)
    elif output is Format.HTML:
        from stacks.commands.page.view import html_of_reports

        typer.echo(html_of_reports(reports), nl=False)
    else:
        from stacks.commands.plan.drawing import svg

        typer.echo("".join(svg(each.plan) for each in reports if each.plan), nl=False)


def _chosen(stack: "StackSettings", history: str, save: Path | None, cluster: str | None, output: Format) -> None:
    """Writes the results of past jobs, with the present and with the proposed workers."""
    from components.cluster import ClusterUnreachableError
    from stacks.commands.plan.history.jobs import HistoryError, read
    from stacks.commands.plan.past import NoSuchClusterError, as_object, chosen, compare, report

    with ending(MISUSED, HistoryError, NoSuchClusterError, ClusterUnreachableError):
        name = chosen(stack, cluster)
        jobs, notes = _live(stack, name, save) if history == LIVE else (read(Path(history)), ())
        compared = compare(stack, name, jobs, notes)
    if output is Format.JSON:
        typer.echo(json.dumps(as_object(compared), indent=2))
    else:
        _written([report(compared)], output)


def _live(stack: "StackSettings", name: str, save: Path | None) -> tuple[list["Job"], tuple[str, ...]]:
    """The jobs of a live RayCluster, together with saved ones, and notes for the reader."""
    from stacks.commands.plan.history.jobs import keep, playable
    from stacks.commands.plan.history.live import demand
    from stacks.program.identity import cluster_of_stack

    namespace, _, cluster = name.partition("/")
    found = demand(cluster_of_stack(stack), namespace, cluster)
    jobs = keep(save, found.jobs) if save else playable(f"Ray of {name}", found.jobs.values())
    return jobs, (found.sentence(name),)
