"""`ray-platform review`: one comment for a pull request, on all stack files that it touches."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Price, ending


class Format(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"


def review(
    base: Annotated[str, typer.Option(metavar="REVISION", help="The branch that the change is for: origin/main.")],
    output: Annotated[
        Format, typer.Option("--format", help="For a comment on a pull request, or for programs.")
    ] = Format.MARKDOWN,
    preview_json: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Output of `preview --json` of a touched stack. Several are allowed."),
    ] = None,
    rehearsal_json: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Output of `make rehearse` with --format json. Several are allowed."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--policies",
            metavar="FILE",
            envvar="RAY_PLATFORM_POLICIES",
            help="Levels, options and exceptions of policies. Default: policies/configuration.yaml.",
        ),
    ] = None,
    price: Price = None,
) -> None:
    """Report what a change does to each stack file of this folder that it touches: errors, pods, GPUs and cost, rights,
    policies. Compares the files here, committed or not, with the commit where the branch left REVISION.

    Exit code: 0 nothing fails, whatever it disrupts; 1 a stack file has errors or violates a mandatory policy; 2 wrong
    use, or git cannot read the revision.
    """
    from policies.read import FILE, ConfigurationError, load
    from stacks.commands.impact.sources import NoSuchSourceError
    from stacks.commands.review.comment import comment
    from stacks.commands.review.reports import NoPreviewError, NoRehearsalError, previews, rehearsals
    from stacks.commands.review.reviewed import as_object, change
    from stacks.commands.review.reviewed import review as reviewed

    with ending(MISUSED, ConfigurationError, NoPreviewError, NoRehearsalError, NoSuchSourceError):
        found = reviewed(
            change(base, Path()),
            load(config or FILE),
            previews(preview_json or ()),
            rehearsals(rehearsal_json or ()),
            price,
        )
    typer.echo(json.dumps(as_object(found), indent=2) if output is Format.JSON else comment(found))
    if found.fails:
        raise typer.Exit(FOUND)


def changes(
    preview: Annotated[Path, typer.Argument(metavar="FILE", help="Output of `preview --json`.")],
) -> None:
    """Print a line for each change of a preview: operation, resource and the fields that differ, without values.

    Previews that would do the same print the same lines, so that `diff` compares what was approved with what an update
    would do now. Exit code: 0, 2 the file is not a preview.
    """
    from stacks.commands.review.reports import NoPreviewError
    from stacks.commands.review.reports import changes as found

    with ending(MISUSED, NoPreviewError):
        lines = found(preview)
    for line in lines:
        typer.echo(line)
