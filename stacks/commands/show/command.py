"""`ray-platform show`: the settings of a stack file merged over its bases, and where each value stands."""

from typing import Annotated

import typer

from stacks.commands.check.command import MISUSED, Stack, ending, stack_path


def show(
    stack: Stack,
    origin: Annotated[bool, typer.Option("--origin", help="Add the file and the line of each value.")] = False,
) -> None:
    """Print a stack file merged over the files that it extends, as YAML. Values that may be secret are hidden.

    A cluster with `configuration` has the settings that its launcher file becomes. The file may have errors; `check`
    reports these. Exit code: 0, or 2 if a file cannot be read or merged.
    """
    from core.problems import StackFileError
    from core.stack_file import read, stack_file
    from stacks.commands.show.merged import lines
    from stacks.launcher_files.configuration import with_launcher_files
    from stacks.load import settings_of

    file = stack_path(stack)
    with ending(MISUSED, StackFileError):
        merged = with_launcher_files(stack_file(file, read(file)))
    try:
        settings_of(merged)
        valid = True
    except StackFileError:
        valid = False
    for line in lines(merged, origin=origin, valid=valid):
        typer.echo(line)
