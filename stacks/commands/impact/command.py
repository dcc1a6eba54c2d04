"""`ray-platform impact`: what an edit of a stack file does to what runs."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from stacks.commands.check.command import MISUSED, Price, ending, stack_path, stacks_here

HURTS = 1
"""Exit code: the edit disrupts something that runs."""


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def impact(
    to: Annotated[
        str, typer.Option(metavar="STACK or FILE", help="The edited stack file.", autocompletion=stacks_here)
    ],
    from_: Annotated[
        str, typer.Option("--from", metavar="REVISION, FILE or live", help="What it is compared with.")
    ] = "HEAD",
    output: Annotated[
        Format, typer.Option("--format", help="For a terminal, for programs, for a pull request.")
    ] = Format.TEXT,
    price: Price = None,
    allow_disruption: Annotated[
        bool, typer.Option("--allow-disruption", help="Exit with 0 although the edit disrupts something that runs.")
    ] = False,
) -> None:
    """Report what an edit of a stack file does to running pods, object by object, and what would be safer.

    Exit code: 0 nothing that runs is disrupted; 1 something is, unless --allow-disruption; 2 wrong use, or an invalid
    file.
    """
    from components.cluster import ClusterUnreachableError
    from core.problems import StackFileError
    from core.stack_file import stack_name
    from stacks.commands.impact.comparison import impact_of, impact_on
    from stacks.commands.impact.report import as_object, report
    from stacks.commands.impact.sources import LIVE, NoSuchSourceError, stack_before
    from stacks.load import load

    file = stack_path(to)
    with ending(MISUSED, StackFileError, NoSuchSourceError, ClusterUnreachableError):
        after = load(file)
        if from_ == LIVE:
            from stacks.commands.impact.live import ask, others, running, with_busy
            from stacks.program.identity import cluster_of_stack

            cluster = cluster_of_stack(after)
            live = running(cluster, after)
            name = stack_name(file)
            found = impact_on(live, after, name, others(cluster, after, name))
            found = with_busy(found, live, ask(cluster, found, live))
        else:
            found = impact_of(stack_before(from_, file), after, price)
    if output is Format.JSON:
        typer.echo(json.dumps({"from": from_, "to": str(file), **as_object(found)}, indent=2))
    else:
        from stacks.commands.plan.text import markdown, show

        written = report(f"{from_} -> {file}", found)
        if output is Format.TEXT:
            show([written])
        else:
            typer.echo(markdown([written]), nl=False)
    if found.verdict.hurts and not allow_disruption:
        raise typer.Exit(HURTS)
