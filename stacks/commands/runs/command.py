"""`ray-platform runs`: the runs that tenants' run histories have recorded, one run, or its log."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Stack, ended, ending
from stacks.commands.status.command import Context, Format, failing, settings_of, tenants_of

if TYPE_CHECKING:
    from components.cluster import Cluster
    from stacks.commands.runs.history import Run
    from stacks.commands.runs.outside import Outside
    from stacks.settings import StackSettings


def runs(
    stack: Stack,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAMESPACE/]NAME", show_default=False, help="A run, or its ID. Default: all of them."),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant, by its name or namespace.")] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--cluster", show_default=False, help="Only runs on this cluster. Outside Kubernetes: what its head lists."
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="For a terminal, or for programs.")] = Format.TEXT,
    logs: Annotated[bool, typer.Option("--logs", help="Show the log of the run.")] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, show_default=False, help="With --logs: which attempt. Default: the last.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="How many runs to list, the newest.")] = 50,
    context: Context = None,
) -> None:
    """Show what the run history has of jobs, also of those whose cluster and RayJob are gone.

    Needs the rights of a user of the tenant, who may read nothing more.

    Exit code: 0 shown; 1 a history cannot be read, or has no such run or log; 2 wrong use, or the cluster cannot be
    read; 130 interrupted.
    """
    if name is None and (logs or attempt is not None):
        raise ended("--logs and --attempt are for one run: write its name after the stack", MISUSED)
    with failing():
        from core.stack_file import stack_name
        from stacks.commands.check.command import stack_path

        settings = settings_of(stack).in_context(context)
        if on is not None and tenant is None and (head := _outside(settings, stack_name(stack_path(stack)), on)):
            if attempt not in (None, 1):
                raise ended("a job outside Kubernetes has one attempt: leave out --attempt", MISUSED)
            _of_head(head, name, output, last, logs=logs)
            return
        shown = tenants_of(settings, tenant, stack_name(stack_path(stack)))
        namespaces = [each.namespace_name for each in shown if each.run_history]
        if not namespaces:
            none = f"tenant {tenant!r} has no" if tenant else "no tenant of the stack has a"
            heads = [each.name for each in settings.cml.clusters] if settings.cml else []
            heads += [each.name for each in settings.external_clusters]
            asks = f"; --cluster NAME asks the head of {', '.join(heads)}" if heads else ""
            raise ended(
                f"{none} run history: `runHistory` in the stack file records runs (docs/runs.md){asks}", MISUSED
            )

        from stacks.commands.runs.history import on_cluster, read, selected
        from stacks.program.identity import cluster_of_stack

        cluster = cluster_of_stack(settings)
        found, unreadable = read(cluster, namespaces)
        if on is not None:
            found = on_cluster(found, on)
        for namespace, why in unreadable.items():
            typer.echo(f"the run history of namespace {namespace} cannot be read: {why}", err=True)
        if name is not None:
            run = selected(found, name)
            if run is None:
                raise ended(f"no run history has {name!r}: `ray-platform runs {stack}` lists what there is", FOUND)
            _log(cluster, run, attempt) if logs else _one(cluster, run, output)
        elif output is Format.TEXT:
            from stacks.commands.runs.report import show

            if len(unreadable) < len(namespaces):
                show(found, last)
        else:
            listed = [{"namespace": run.namespace, **run.record} for run in found.runs[:last]]
            typer.echo(json.dumps({"runs": listed, "problems": found.problems, "unreadable": unreadable}, indent=2))
        if unreadable:
            raise typer.Exit(FOUND)


def _outside(settings: "StackSettings", stack: str, cluster: str) -> "Outside | None":
    """A cluster outside Kubernetes; None if the stack has none of that name."""
    from stacks.commands.runs import outside

    with ending(FOUND, *outside.errors()):
        return outside.cluster_of(settings, stack, cluster)


def _of_head(cluster: "Outside", name: str | None, output: Format, last: int, *, logs: bool) -> None:
    """Shows what the head of a cluster outside Kubernetes lists, and what is kept of it."""
    from stacks.commands.runs import outside
    from stacks.commands.runs.history import selected
    from stacks.commands.runs.report import show, show_one

    with ending(FOUND, *outside.errors()):
        found, note = outside.read(cluster)
        run = selected(found, name) if name else None
        if name and run is None:
            raise ended(f"Ray cluster {cluster.name} has no job {name!r}: leave out the name to list all", FOUND)
        if run and logs:
            _write(outside.log(cluster, run))
        elif output is Format.JSON:
            every = {"runs": [each.record for each in found.runs[:last]], "problems": {}, "unreadable": {}}
            typer.echo(json.dumps(run.record if run else every, indent=2))
        elif run:
            show_one(run.record)
        else:
            show(found, last)
            typer.echo(note)


def _one(cluster: "Cluster", run: "Run", output: Format) -> None:
    from stacks.commands.runs.history import whole

    record = whole(cluster, run)
    if output is Format.JSON:
        typer.echo(json.dumps(record, indent=2))
        return
    from stacks.commands.runs.report import show_one

    show_one(record)


def _log(cluster: "Cluster", run: "Run", attempt: int | None) -> None:
    from stacks.commands.runs.history import log

    attempts = run.record.get("attempts") or []
    number = attempt or len(attempts)
    found = log(cluster, run, number) if 1 <= number <= len(attempts) else None
    if found is None:
        reasons = run.record.get("missing") or [f"it has {len(attempts)} attempts"]
        raise ended(f"there is no log of attempt {number} of {run.title}: {'; '.join(reasons)}", FOUND)
    # The list may be older than the log.
    if (attempts[number - 1]["log"] or {}).get("cut"):
        typer.echo(f"# the last {len(found)} bytes", err=True)
    _write(found)


def _write(log: bytes) -> None:
    sys.stdout.buffer.write(log)
    sys.stdout.buffer.flush()
