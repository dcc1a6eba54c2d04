"""`ray-platform images`: what a stack pulls from registries and downloads."""

import json
from typing import Annotated

import typer

from stacks.commands.check.command import MISUSED, Stack, ending, stack_path
from stacks.commands.status.command import Format


def images(
    stack: Stack,
    output: Annotated[Format, typer.Option("--format", help="For a terminal, or for programs.")] = Format.TEXT,
) -> None:
    """List every image that the pods of a stack use, and every manifest that `pulumi up` downloads.

    Exit code: 0, or 2 if the stack file is invalid.
    """
    from core.problems import StackFileError
    from stacks.commands.images.used import as_object, as_text, used
    from stacks.load import load

    with ending(MISUSED, StackFileError):
        found = used(load(stack_path(stack)))
    typer.echo(json.dumps(as_object(found), indent=2) if output is Format.JSON else as_text(found))
