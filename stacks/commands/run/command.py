"""`ray-platform run` and `cancel`: run a job template of the stack file with arguments, and stop the run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from stacks.commands.check.command import FOUND, MISUSED, Stack, ended, ending
from stacks.commands.status.command import SIMULATED, Context, failing, meant, settings_of

if TYPE_CHECKING:
    from components.cluster import Cluster

_NO_LIMIT = 10 * 365 * 24 * 3600
"""Seconds: a run ends by its own deadlines."""


_LIKE = 0.75
"""How similar a misspelt option is to the right one: `--wiat`, and not `--weight`."""


class RunCommand(TyperCommand):
    """Options that `run` does not have are the job's, also without `--` before them, unless they look like its own."""

    ignore_unknown_options = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from difflib import get_close_matches

        own = [name for each in self.params for name in each.opts if name.startswith("--")]
        for word in args[: args.index("--")] if "--" in args else args:
            option = word.partition("=")[0]
            if option.startswith("--") and option not in own and (meant := get_close_matches(option, own, 1, _LIKE)):
                ctx.fail(f"No such option: {option}. Did you mean {meant[0]}? If it is the job's, write `--` before it")
        return super().parse_args(ctx, args)


def run(
    stack: Stack,
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A job template.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENT", show_default=False, help="They follow the template's entrypoint."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    working_dir: Annotated[
        Path | None,
        typer.Option(
            "--working-dir", metavar="FOLDER", help="Run the code of this folder, if the template has localCode."
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="SIZE",
            help="One of the template's sizes. Default: its own cluster; `run` then lists them.",
        ),
    ] = None,
    context: Context = None,
) -> None:
    """Run a job template: create its RayJob, with arguments, and print the name.

    Needs only the rights of a Ray user. Ctrl-C stops waiting; the job keeps running.

    Exit code: 0 created, and with --wait succeeded; 1 refused or failed, with the reason; 2 wrong use, or the cluster
    cannot be read; 130 interrupted.
    """
    with failing():
        settings = settings_of(stack).in_context(context)

        from components.job_template.manifests import BadArgumentsError
        from stacks.commands.run.live import RefusedError, start
        from stacks.commands.run.package import PackageError, pack
        from stacks.commands.status.live import simulated
        from stacks.commands.status.targets import NoSuchTargetError, job_template
        from stacks.program.identity import cluster_of_stack

        namespace, found = job_template(settings, name)
        template, sizes = found.name, ", ".join(found.sizes)
        if size and size not in found.sizes:
            option = "" if found.sizes else "; if --size is the job's option, write `--` before it"
            raise NoSuchTargetError(f"--size: {found.no_such_size(size)}{option}")
        with ending(MISUSED, PackageError):
            package = pack(working_dir) if working_dir else None
        cluster = cluster_of_stack(settings)
        with ending(MISUSED, BadArgumentsError), ending(FOUND, RefusedError):
            made, beyond = start(cluster, namespace, template, arguments or (), package, size)
        typer.echo(f"{namespace}/{made}")
        if sizes and not size:
            typer.echo(f"# without --size it has the template's own cluster; sizes: {sizes}", err=True)
        if package:
            typer.echo(f"# code: {package}", err=True)
        if beyond:
            options = ", ".join(beyond)
            typer.echo(
                f"# the template does not list {options}. You are an administrator, whom its limits do not apply to; a "
                "user would be refused",
                err=True,
            )
        for command in ("logs", "cancel"):
            typer.echo(f"# ray-platform {command} {stack} {namespace}/{made}", err=True)
        if simulated(cluster):
            typer.echo(f"# {SIMULATED}: KubeRay reports the job as failed, and it has no log", err=True)
        if wait:
            _wait(stack, cluster, namespace, made, settings.operator.namespace)


def cancel(
    stack: Stack,
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A run, as `run` has printed it.")],
    context: Context = None,
) -> None:
    """Stop a run and delete its RayJob, with its cluster. A run history keeps its record.

    Exit code: 0 deleted; 1 refused, with the reason; 2 wrong use, or the cluster cannot be read.
    """
    with failing():
        settings = settings_of(stack).in_context(context)
        cluster, target = meant(settings, name)

        from stacks.commands.run.live import RefusedError
        from stacks.commands.run.live import cancel as delete

        if target.kind != "RayJob":
            raise ended(f"{target.title} is not a RayJob: `cancel` stops jobs", MISUSED)
        tenant = next((each for each in settings.tenants if each.namespace_name == target.namespace), None)
        if tenant and target.name in (*(job.name for job in tenant.jobs), *tenant.job_names):
            of = " of the tenant's own stack" if target.name in tenant.job_names else ""
            raise ended(
                f"{target.title} is in the stack file{of}, and the next `up` would start it again: set suspend there",
                MISUSED,
            )
        with ending(FOUND, RefusedError):
            delete(cluster, target.namespace, target.name)
        typer.echo(f"{target.title} is deleted, and its cluster with it")


def _wait(stack: str, cluster: "Cluster", namespace: str, name: str, operator_namespace: str) -> None:
    import asyncio

    from components.cluster import UnauthorizedError
    from components.ray_job.progress import JobFailedError, until_reached

    def show(state: str) -> None:
        typer.echo(f"# {state}", err=True)

    try:
        status = asyncio.run(
            until_reached(cluster, namespace, name, "succeeded", operator_namespace, _NO_LIMIT, show, ends=True)
        )
    except JobFailedError as error:
        raise ended(error, FOUND) from error
    except UnauthorizedError as error:
        message = (
            f"lost the connection to run {namespace}/{name}, which is still running: {error}. If your login has "
            f"expired, log in again. `ray-platform status {stack}` shows the run, and `ray-platform runs {stack} "
            f"{namespace}/{name}` what a run history has of it"
        )
        raise ended(message, MISUSED) from error
    typer.echo(f"# {status}", err=True)
