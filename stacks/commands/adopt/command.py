"""`ray-platform adopt`: adds a live RayCluster to a stack without changing it."""

import difflib
from typing import Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Stack, ended, stack_path
from stacks.commands.status.command import Context


def adopt(
    stack: Stack,
    cluster: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The live RayCluster.")],
    context: Context = None,
    write: Annotated[bool, typer.Option("--write", help="Add the lines to the stack file.")] = False,
) -> None:
    """Add a live RayCluster to a stack file, so that the next `pulumi up` adopts it without changing it.

    Only reads the cluster. Shows the lines to add as a diff, or adds them with --write.

    Exit code: 0 shown or added; 1 it cannot be adopted, with the reason; 2 wrong use, or the cluster cannot be read.
    """
    from components.cluster import ClusterUnreachableError
    from core.files import replace_text
    from core.problems import StackFileError
    from core.stack_file import read, stack_file
    from stacks.commands.adopt.entry import CannotInsertError, entry, insert_cluster, only_added
    from stacks.commands.adopt.live import CannotAdoptError, live_cluster
    from stacks.load import settings_of
    from stacks.program.identity import cluster_of_stack

    namespace, _, name = cluster.partition("/")
    if not namespace or not name or "/" in name:
        raise ended(f"error: {cluster!r} is not NAMESPACE/NAME: write for example team-a/training", MISUSED)
    file = stack_path(stack)
    if not file.is_file():
        where = "run this in the folder of Pulumi.yaml, or set the file's path"
        raise ended(f"error: there is no stack file {file}: {where}", MISUSED)
    try:
        before = read(file)
        settings = settings_of(stack_file(file, before)).in_context(context)
        body = live_cluster(cluster_of_stack(settings), namespace, name)
        made = entry(body, settings)
        after = insert_cluster(before, made.tenant, made.cluster)
        only_added(settings, settings_of(stack_file(file, after)), namespace, made.cluster)
    except (StackFileError, CannotAdoptError, CannotInsertError, ClusterUnreachableError) as error:
        unread = isinstance(error.__cause__, ClusterUnreachableError)
        raise ended(f"error: {error}", MISUSED if unread else FOUND) from error
    for note in made.notes:
        typer.echo(f"note: {note}", err=True)
    if write:
        try:
            replace_text(file, after)
        except OSError as error:
            raise ended(f"error: {file} cannot be written: {error.strerror}", FOUND) from error
        typer.echo(
            f"{file} has RayCluster {cluster} now; check `pulumi preview --diff`, then `pulumi up` adopts it", err=True
        )
    else:
        changed = difflib.unified_diff(before.splitlines(), after.splitlines(), str(file), str(file), lineterm="")
        typer.echo("\n".join(changed))
