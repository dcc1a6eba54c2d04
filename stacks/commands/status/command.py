"""`ray-platform status`, `logs`, `dashboard` and `wake`: what of a stack runs now, why something does not, how to
look into it, and how a RayCluster that rests runs again. Only `wake` changes something."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stacks.commands.check.command import FOUND, MISUSED, Stack, ended, ending, stack_path
from stacks.program.cancelled import EXIT_CODE

if TYPE_CHECKING:
    from components.cluster import Cluster
    from components.cml.manifests import Inputs
    from core.body import Body
    from stacks.commands.status.cml import CmlStatus
    from stacks.commands.status.snapshot import Live
    from stacks.commands.status.targets import Target
    from stacks.commands.status.tenants import StackStatus
    from stacks.settings import StackSettings, TenantSettings

PAUSE_SECONDS = 3.0
"""Between two looks of `--watch`."""


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


Name = Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A RayCluster, RayJob or RayService.")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: the stack file's.")]


def status(
    stack: Stack,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant, by its name or namespace.")] = None,
    output: Annotated[Format, typer.Option("--format", help="For a terminal, or for programs.")] = Format.TEXT,
    context: Context = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look every three seconds, until Ctrl-C.")] = False,
) -> None:
    """Show what of a stack runs now: clusters, jobs, services, queues, quotas, and why something is not ready.

    Reads the cluster with your rights, and names what they do not include. Clusters on Cloudera ML are read with the
    key in CML_API_KEY.

    Exit code: 0 everything is as the stack file says; 1 something is not, with its reason; 2 wrong use, an invalid
    file, or the cluster cannot be read; 130 interrupted.
    """
    with failing():
        from core.stack_file import stack_name
        from stacks.commands.status.live import simulated
        from stacks.commands.status.tenants import stack_status
        from stacks.objects.cml import without_kubernetes
        from stacks.program.identity import cluster_of_stack

        settings, name = settings_of(stack).in_context(context), stack_name(stack_path(stack))
        shown = tenants_of(settings, tenant, name)
        cluster = cluster_of_stack(settings)

        def look() -> "StackStatus":
            return stack_status(settings, shown, measured(cluster, settings, shown), cml_of(settings, name, tenant))

        if watch:
            _watch(name, look, output)
        found = look()
        _show(name, found, output)
        if output is Format.TEXT and not without_kubernetes(settings) and simulated(cluster):
            typer.echo(f"{SIMULATED}: no job runs, no service answers, and an image that does not exist is not noticed")
    if not found.ok:
        raise typer.Exit(FOUND)


def logs(
    stack: Stack,
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show further lines, until Ctrl-C.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Only that many last lines.")] = None,
    pod: Annotated[
        str | None, typer.Option(metavar="head or POD", help="Default: the head; of a RayJob, its driver.")
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="From the stack's own log store, also of pods that are gone.")
    ] = False,
    file: Annotated[
        str | None, typer.Option(help="With --stored: files of Ray, such as 'raylet.*'. Default: what jobs print.")
    ] = None,
    context: Context = None,
) -> None:
    """Show the log of a RayCluster's head, of a RayJob's driver, or of another pod. NAME may also be that of a cluster
    on Cloudera ML, whose head has Ray's log.

    With --stored: the last 1,000 lines of all its pods that the log store has, or the last --tail lines.

    Exit code: 0 shown; 1 there is no log now, with the reason; 2 wrong use, or the cluster cannot be read; 130
    interrupted.
    """
    with failing():
        from core.stack_file import stack_name
        from stacks.commands.status.cml import inputs_of
        from stacks.commands.status.live import simulated
        from stacks.commands.status.targets import HEAD, NoLogError, place_of_log

        settings = settings_of(stack).in_context(context)
        if on_cml := inputs_of(settings.cml, stack_name(stack_path(stack)), name):
            if pod not in (None, HEAD):
                raise ended(f"{name} is on Cloudera ML, where only the head's log is read: leave out --pod", MISUSED)
            _log_of_cml(on_cml, tail, follow=follow)
            return
        if stored:
            _stored(settings, name, pod, file, tail, follow=follow)
            return
        if file is not None:
            raise ended("--file selects stored logs: add --stored", MISUSED)
        with _may_be_stored(settings):
            cluster, target = meant(settings, name)
        with ending(FOUND, NoLogError):
            with _may_be_stored(settings):
                place = place_of_log(target, pod, cluster.connection)
            if simulated(cluster):
                raise NoLogError(f"{SIMULATED}: they have no logs")
        typer.echo(f"# pod {place.namespace}/{place.pod}, container {place.container}", err=True)
        _write(cluster.log(place.namespace, place.pod, place.container, follow=follow, tail=tail))


def _stored(
    settings: "StackSettings", name: str, pod: str | None, file: str | None, tail: int | None, *, follow: bool
) -> None:
    if settings.logs is None or settings.logs.own_namespace is None:
        raise ended("the stack file has no log store: leave out --stored, or set logs.mode to install", MISUSED)
    if follow:
        raise ended("--follow shows a pod that runs: leave out --stored or --follow", MISUSED)

    from stacks.commands.status.stored import MOST, stored
    from stacks.program.identity import cluster_of_stack

    most = MOST if tail is None else tail
    shown = 0
    for line in stored(cluster_of_stack(settings), settings, name, pod=pod, file=file, most=most):
        typer.echo(line)
        shown += 1
    if not shown and most:
        raise ended(f"the log store has no such line of {name!r}: --file '*' also reads Ray's own files", FOUND)
    if tail is None and shown >= most:
        typer.echo(f"# These are the last {most:,} lines: --tail shows more", err=True)


@contextmanager
def _may_be_stored(settings: "StackSettings") -> Iterator[None]:
    """Adds to an error about a pod or an object that is not there where else its lines may be."""
    from stacks.commands.status.targets import NoLogError, NoSuchTargetError

    try:
        yield
    except (NoLogError, NoSuchTargetError) as error:
        if settings.logs is None or settings.logs.own_namespace is None:
            raise
        raise type(error)(f"{error}. If it has ended, its lines may be in the log store: add --stored") from error


def _log_of_cml(inputs: "Inputs", tail: int | None, *, follow: bool) -> None:
    from components.cml.client import CmlError
    from stacks.commands.status.cml import head_log

    with ending(FOUND, CmlError):
        _write(head_log(inputs, tail, follow=follow))


def _write(log: Iterable[bytes]) -> None:
    for part in log:
        sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()


def dashboard(stack: Stack, name: Name, context: Context = None) -> None:
    """Print the URL of a dashboard, or the command that makes one, and the command that prints its token. NAME may also
    be that of an external cluster, of a cluster on Cloudera ML, or of a job that `up` submits there.

    Exit code: 0 printed; 1 there is no RayCluster now; 2 wrong use, or the cluster cannot be read.
    """
    with failing():
        from core.stack_file import stack_name
        from stacks.commands.status.dashboard import elsewhere, lines
        from stacks.commands.status.live import simulated
        from stacks.program.identity import cluster_of_stack, connection_of

        settings = settings_of(stack).in_context(context)
        connection = connection_of(settings)
        if found := list(elsewhere(settings, stack_name(stack_path(stack)), name, connection)):
            typer.echo("\n".join(found))
            return
        cluster = cluster_of_stack(settings)
        target = target_of(cluster, settings, name)
        if target.cluster is None:
            raise ended(f"{target.title} has no RayCluster now: `ray-platform status` shows why", FOUND)
        for line in lines(target.cluster, _urls(cluster, settings, target.cluster), connection):
            typer.echo(line)
        if simulated(cluster):
            typer.echo(f"# {SIMULATED}: no port of a pod answers", err=True)


def wake(
    stack: Stack,
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A RayCluster.")],
    context: Context = None,
) -> None:
    """Wake a suspended RayCluster, such as one that rests because nobody used it. Needs the right to patch it.

    Exit code: 0 it starts, or runs already; 1 it is not woken, with the reason; 2 wrong use, or the cluster cannot be
    read; 130 interrupted.
    """
    with failing():
        from components.cluster import ForbiddenError
        from stacks.commands.status.targets import WHO_WAKES, NotWokenError, wake_patch

        settings = settings_of(stack).in_context(context)
        cluster, target = meant(settings, name)
        try:
            if (asked := wake_patch(target, settings)) is None:
                typer.echo(f"{target.title} is not suspended")
                return
            cluster.request(**asked)
        except NotWokenError as error:
            raise ended(error, FOUND) from error
        except ForbiddenError as error:
            raise ended(f"{error}. {WHO_WAKES}", FOUND) from error
        typer.echo(f"{target.title} starts: `ray-platform status` shows when it is ready")


SIMULATED = "The nodes are simulated, and no process runs in their pods"
"""Begin of a line."""


@contextmanager
def failing() -> Iterator[None]:
    """Ends the command with one message and its exit code."""
    from components.cluster import ClusterUnreachableError
    from core.problems import StackFileError
    from stacks.commands.status.targets import NoSuchTargetError

    try:
        yield
    except ClusterUnreachableError as error:
        raise ended(f"the cluster cannot be read: {error}", MISUSED) from error
    except (StackFileError, NoSuchTargetError) as error:
        raise ended(error, MISUSED) from error
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_CODE) from None


def settings_of(stack: str) -> "StackSettings":
    """The settings of a stack. Raises StackFileError."""
    from stacks.load import load

    return load(stack_path(stack))


def tenants_of(settings: "StackSettings", name: str | None, stack: str) -> "Sequence[TenantSettings]":
    """All tenants, or the one of that name or namespace. Raises NoSuchTargetError. `stack`: its name, for messages."""
    if name is None:
        return settings.tenants
    from core.suggestions import names_hint
    from stacks.commands.status.targets import NoSuchTargetError

    if meant := [each for each in settings.tenants if name in (each.name, each.namespace_name)]:
        return meant
    hint = names_hint(name, [each.name for each in settings.tenants])
    raise NoSuchTargetError(f"{stack} has no tenant {name!r}: {hint}")


def live_of(cluster: "Cluster", settings: "StackSettings", tenants: "Sequence[TenantSettings]") -> "Live":
    """What exists in the namespaces of these tenants. Raises ClusterUnreachableError."""
    from stacks.commands.status.snapshot import Live
    from stacks.objects.cml import without_kubernetes

    if without_kubernetes(settings):
        return Live(datetime.now(UTC), {})

    from stacks.commands.status import platform
    from stacks.commands.status.live import look, refusals, workloads

    backend = settings.scheduler.backend if settings.scheduler else None
    namespaces = [each.namespace_name for each in tenants]
    live = look(cluster, namespaces, settings.operator.namespace, backend)
    found = workloads(cluster, platform.workloads(settings, live))
    return replace(live, workloads=found, refusals=refusals(cluster, found))


def measured(cluster: "Cluster", settings: "StackSettings", tenants: "Sequence[TenantSettings]") -> "Live":
    """`live_of`, with what the stack's own Prometheus records of these tenants."""
    live = live_of(cluster, settings, tenants)
    if not (prometheus := settings.prometheus_namespace) or not live.namespaces:
        return live

    from stacks.commands.status.live import usages

    return replace(live, usages=usages(cluster, prometheus, live.namespaces))


def cml_of(settings: "StackSettings", stack: str, tenant: str | None) -> "Iterable[CmlStatus]":
    """The clusters on Cloudera ML, which belong to no tenant. `stack`: its name."""
    if settings.cml is None or tenant is not None:
        return ()
    from stacks.commands.status.cml import cml_statuses

    return cml_statuses(settings.cml, stack)


def meant(settings: "StackSettings", name: str) -> "tuple[Cluster, Target]":
    """The stack's cluster, and the live object of that name in it. Raises all that `target_of` raises."""
    from stacks.program.identity import cluster_of_stack

    cluster = cluster_of_stack(settings)
    return cluster, target_of(cluster, settings, name)


def target_of(cluster: "Cluster", settings: "StackSettings", name: str) -> "Target":
    """The live object of that name. Raises NoSuchTargetError, and ClusterUnreachableError."""
    from stacks.commands.status.targets import target

    namespace, _, _ = name.rpartition("/")
    tenants = [each for each in settings.tenants if each.namespace_name == namespace] or settings.tenants
    return target(name, live_of(cluster, settings, tenants).namespaces)


def _urls(cluster: "Cluster", settings: "StackSettings", body: "Body") -> list[str]:
    """The URLs of live Ingresses; for an account that must not read them, that of the stack file."""
    from components.cluster import ForbiddenError
    from stacks.commands.status.dashboard import urls

    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        return list(urls(body, cluster.list("networking.k8s.io/v1", "ingresses", namespace) or ()))
    except ForbiddenError:
        return [
            f"https://{each.ingress.host}"
            for tenant in settings.tenants
            for each in tenant.clusters
            if (tenant.namespace_name, each.name) == (namespace, name) and each.ingress
        ]


def _show(name: str, found: "StackStatus", output: Format) -> None:
    if output is Format.TEXT:
        from stacks.commands.status.text import show

        show(name, found)
    else:
        from stacks.commands.status.report import as_object

        typer.echo(json.dumps(as_object(name, found), indent=2))


def _watch(name: str, look: "Callable[[], StackStatus]", output: Format) -> NoReturn:
    """Shows report after report, until Ctrl-C. The first look has to succeed; later the last report stays."""
    from components.cluster import ClusterUnreachableError

    if output is Format.TEXT:
        from stacks.commands.status.text import redrawing as drawing
    else:
        from stacks.commands.status.report import in_lines as drawing
    found = look()
    with drawing(name) as draw:
        draw(found, "")
        while True:
            time.sleep(PAUSE_SECONDS)
            try:
                found, error = look(), ""
            except ClusterUnreachableError as failed:
                error = f"the cluster could not be read again: {failed}"
            draw(found, error)
