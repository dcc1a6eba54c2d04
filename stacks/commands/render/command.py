"""`ray-platform render`: a stack as plain manifests."""

from pathlib import Path
from typing import Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Stack, ended, ending, stack_path


def render(
    stack: Stack,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="It is written, or written again.")],
    path: Annotated[
        str | None, typer.Option(help="Path of the folder in its repository, for Flux and Argo CD. Default: FOLDER.")
    ] = None,
) -> None:
    """Write a stack as plain manifests in the order in which they are applied, for Argo CD, Flux or kubectl.

    The README of the folder lists what is not a plain manifest. Secrets are references. Exit code: 0, 1 the folder has
    other files, KubeRay's manifests cannot be read or the stack has none, 2 the stack file is invalid.
    """
    from components.crds.definitions import MissingDefinitionError
    from components.manifest_files import ManifestError
    from components.manifest_files import render as manifests
    from core.problems import StackFileError
    from core.stack_file import read, stack_file, stack_name
    from stacks.commands.render.files import OccupiedError, write
    from stacks.commands.render.stages import rendered_stack
    from stacks.load import settings_of
    from stacks.objects.cml import installs_operator, without_kubernetes

    file = stack_path(stack)
    with ending(MISUSED, StackFileError):
        parsed = stack_file(file, read(file))
        settings = settings_of(parsed)
    if without_kubernetes(settings):
        raise ended(f"error: stack {stack_name(file)} has nothing on Kubernetes, so it has no manifests", FOUND)
    operator = settings.operator
    name = stack_name(file)
    try:
        ours = installs_operator(settings)
        tree = manifests(operator.tree, pinned=operator.location is None) if ours else []
        found = rendered_stack(settings, name, tree)
        count = write(found, name, folder, path or folder.as_posix().strip("/"))
    except (ManifestError, MissingDefinitionError, OccupiedError, OSError) as error:
        raise ended(f"error: {error}", FOUND) from error
    typer.echo(f"{folder}: {count} objects in {len(found.stages)} stages, references to {len(found.secrets)} Secrets")
    for each in found.left:
        typer.echo(f"not in there: {each.what}: {each.why}")
