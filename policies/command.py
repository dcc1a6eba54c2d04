"""`ray-platform policies`: lists the rules, and evaluates them for YAML files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

BLOCKED, MISUSED = 1, 2
"""Exit codes: a mandatory rule is violated; a file cannot be read, or has no object, or the arguments are not valid."""


class Format(StrEnum):
    """Format of a report."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


def policies(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE or FOLDER or -]...", help="YAML of Kubernetes; - reads stdin.")
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", help="For a terminal, for programs, or for a pull request.")
    ] = Format.TEXT,
    environment: Annotated[
        str,
        typer.Option(
            "--environment", metavar="NAME", help="Name whose levels apply. Default: all rules are mandatory."
        ),
    ] = "",
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Levels, options and exceptions.")
    ] = None,
    stack_file: Annotated[
        Path | None,
        typer.Option(
            "--stack-file", metavar="FILE", help="Pulumi.NAME.yaml: --environment NAME, with its key policies."
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the rules; as text or json.")] = False,
    write: Annotated[bool, typer.Option("--write", help="With --list: write their reference page.")] = False,
) -> None:
    """Judge Kubernetes objects by rules that read the pod templates of RayClusters.

    Exit code: 0 no mandatory rule is violated, 1 a mandatory rule is violated, 2 a file cannot be read, or has
    something else than objects, or the arguments are not valid. All other files are judged nevertheless.
    """
    if list_:
        _list(output, write)
        return
    if write:
        raise typer.BadParameter("needs --list", param_hint="--write")
    if not files:
        raise typer.BadParameter("name a file, a folder or -", param_hint="FILE")

    from core.stack_file import stack_name
    from policies.judge import Judge
    from policies.read import FILE, ConfigurationError, Unreadable, load, objects, of_stack_file

    try:
        configuration = load(config or FILE)
        if stack_file:
            environment = environment or stack_name(stack_file)
            configuration = configuration.with_stack(environment, of_stack_file(stack_file))
    except ConfigurationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(MISUSED) from error
    found = list(objects(files))
    unreadable = [each for each in found if isinstance(each, Unreadable)]
    report = Judge(configuration, environment).report(each for each in found if not isinstance(each, Unreadable))
    for each in unreadable:
        typer.echo(str(each), err=True)

    from policies import formats

    if output is Format.TEXT:
        formats.show(report)
    elif output is Format.GITHUB:
        for line in formats.as_annotations(report, unreadable):
            typer.echo(line)
    else:
        typer.echo(formats.as_json(report) if output is Format.JSON else formats.as_sarif(report))
    if unreadable:
        raise typer.Exit(MISUSED)
    if report.blocked:
        raise typer.Exit(BLOCKED)


def _list(output: Format, write: bool) -> None:
    from policies import formats
    from policies.rules import RULES

    if write:
        formats.REFERENCE.parent.mkdir(parents=True, exist_ok=True)
        formats.REFERENCE.write_text(formats.reference_text(), encoding="utf-8")
        typer.echo(formats.REFERENCE)
    elif output is Format.JSON:
        typer.echo(formats.rules_as_json())
    elif output is Format.TEXT:
        for rule in RULES:
            typer.echo(f"{rule.id:<28} {rule.severity:<9} {rule.what}")
        typer.echo(f"{len(RULES)} rules")
    else:
        raise typer.BadParameter("is text or json with --list", param_hint="--format")
