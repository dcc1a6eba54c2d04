"""`python -m stacks adopt`: adds a live RayCluster to a stack without changing it."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, ended


def adopt(
    cluster: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The live RayCluster.")],
    stack: Annotated[str, typer.Option(help="The stack that adopts it: Pulumi.STACK.yaml, or a path.")],
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: the stack file's.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Add the lines to the stack file.")] = False,
) -> None:
    """Add a live RayCluster to a stack file, so that the next `pulumi up` adopts it without changing it.

    Only reads the cluster. Shows the lines to add as a diff, or adds them with --write.
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
    file = Path(stack if stack.endswith(".yaml") else f"Pulumi.{stack}.yaml")
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
        raise ended(f"error: {error}", FOUND) from error
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
