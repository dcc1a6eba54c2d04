"""`ray-platform check`: reports the errors of stack files, without Pulumi and without a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

FOUND, MISUSED = 1, 2
"""Exit codes: there are findings; a file cannot be read or the command cannot be run as given."""

Price = Annotated[
    float | None,
    typer.Option("--gpu-hour-price", min=0, help="Price of a GPU per hour, where gpuHourPrice is not set."),
]


def stacks_here(begun: str) -> list[str]:
    """Completions of a stack's name."""
    from core.stack_file import stacks_in

    return [name for name in stacks_in(Path()) if name.startswith(begun)]


Stack = Annotated[
    str,
    typer.Argument(metavar="STACK or FILE", help="NAME for Pulumi.NAME.yaml, or a path.", autocompletion=stacks_here),
]
Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STACK or FILE]...",
        help="NAME for Pulumi.NAME.yaml, or a path. Default: all here.",
        autocompletion=stacks_here,
    ),
]
Environment = Annotated[
    str,
    typer.Argument(metavar="STACK", help="The environment: PROD for Pulumi.PROD.yaml.", autocompletion=stacks_here),
]


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def check(
    files: Files = None,
    output: Annotated[
        Format, typer.Option("--format", help="For a terminal, for programs, or for annotations of a pull request.")
    ] = Format.TEXT,
) -> None:
    """Report all errors in stack files: what `pulumi up` and KubeRay would refuse.

    Exit code: 0 no errors, 1 errors, 2 a file cannot be read or the command is used incorrectly.
    """
    paths = stack_paths(files)

    from stacks.commands.check.findings import check as checked_file

    checked = [checked_file(path) for path in paths]
    if output is Format.TEXT:
        from stacks.commands.check.findings import show

        show(checked)
    else:
        from stacks.commands.check.findings import as_annotations, as_json

        for line in [as_json(checked)] if output is Format.JSON else as_annotations(checked):
            typer.echo(line)
    if any(each.unreadable for each in checked):
        raise typer.Exit(MISUSED)
    if any(each.findings for each in checked):
        raise typer.Exit(FOUND)


def stack_paths(words: list[str] | None) -> list[Path]:
    """The files that the words name; without words, all of this folder."""
    paths = [stack_path(each) for each in words] if words else sorted(Path().glob("Pulumi.*.yaml"))
    if not paths:
        raise ended("this folder has no Pulumi.*.yaml: name a stack or a file", MISUSED)
    return paths


def stack_path(word: str) -> Path:
    """The file that a word names: a path if it looks like one, else the file of the stack, or any file of that name."""
    path, of_stack = Path(word), Path(f"Pulumi.{word}.yaml")
    looks_like_path = "/" in word or word.endswith((".yaml", ".yml"))
    return path if looks_like_path or (path.is_file() and not of_stack.is_file()) else of_stack


def ended(message: object, code: int) -> typer.Exit:
    """The end of a command with a message, to be raised."""
    typer.echo(message, err=True)
    return typer.Exit(code)


@contextmanager
def ending(code: int, *errors: type[Exception]) -> Iterator[None]:
    """Ends the command with the message of such an error."""
    try:
        yield
    except errors as error:
        raise ended(error, code) from error
