"""`ray-platform page`: a page of a stack's plan; with `--live` also of what runs now, on the loopback address."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Stack, ended, stack_path
from stacks.commands.status.command import Context, failing, settings_of, tenants_of

if TYPE_CHECKING:
    from components.cluster import Cluster
    from stacks.planning.plan import Plan
    from stacks.settings import StackSettings

PORT = 8266
"""The port of a live page, next to that of Ray's dashboard."""


def page(
    stack: Stack,
    live: Annotated[
        bool, typer.Option("--live", help="Serve it on this machine, with what runs now, until Ctrl-C.")
    ] = False,
    tenant: Annotated[str | None, typer.Option(help="With --live: only this tenant, by its name or namespace.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"With --live: default {PORT}; 0 for any free one.")
    ] = None,
    context: Context = None,
) -> None:
    """Write a page of a stack's plan as HTML, or with --live serve one that shows what runs now and what waits.

    The live page reads the cluster with your rights while a browser shows it, and changes nothing.

    Exit code: 0 written; 1 the port is in use; 2 wrong use, an invalid file, or the cluster cannot be read; 130
    interrupted.
    """
    for name, value in (("--tenant", tenant), ("--port", port), ("--context", context)):
        if value is not None and not live:
            raise ended(f"{name} is for a live page: add --live", MISUSED)
    with failing():
        from core.stack_file import stack_name

        settings, name = settings_of(stack).in_context(context), stack_name(stack_path(stack))

        from stacks.planning.plan import plan_of

        plan = plan_of(settings)
        if live:
            from stacks.program.identity import cluster_of_stack

            look = page_source(name, plan, settings, tenant, cluster_of_stack(settings))
            _serve(look, name, PORT if port is None else port)
            return

        from stacks.commands.page.view import html, of_plan

        typer.echo(html(of_plan(name, plan)))


def _serve(look: Callable[[], str], name: str, port: int) -> None:
    from stacks.commands.page.server import Server
    from stacks.commands.page.view import policy

    look()
    try:
        server = Server(port, look, policy(live=True))
    except OSError as error:
        raise ended(f"port {port} cannot be used ({error.strerror}): --port another, or 0 for any", FOUND) from error
    with server:
        typer.echo(f"{server.url} shows {name}, until Ctrl-C")
        server.serve_forever()


def page_source(
    name: str, plan: "Plan", settings: "StackSettings", tenant: str | None, cluster: "Cluster"
) -> Callable[[], str]:
    """A function that looks at what runs and makes the page. `tenant`: as of the command. Raises NoSuchTargetError.

    Its first call raises ClusterUnreachableError; later ones keep the last status, with the reason above it.
    """
    from dataclasses import replace
    from time import time

    from components.cluster import ClusterUnreachableError
    from stacks.commands.page.charts import SECONDS, Chart, charts
    from stacks.commands.page.view import COLOURS, FEW, html, of_plan, of_status
    from stacks.commands.status import command, live
    from stacks.commands.status.snapshot import Found
    from stacks.commands.status.tenants import stack_status
    from stacks.objects.cml import without_kubernetes

    last, tenants = of_plan(name, plan), tenants_of(settings, tenant, name)
    prometheus, drawn, until = settings.prometheus_namespace, dict[str, tuple[Chart, ...]](), 0.0

    def drawn_now() -> dict[str, tuple[Chart, ...]]:
        """The charts by namespace. Of many tenants nobody sees them at once, and Prometheus would have to answer."""
        nonlocal drawn, until
        if prometheus and len(tenants) <= FEW and time() > until:
            names = [each.namespace_name for each in tenants]
            drawn = {each: charts(cluster, prometheus, each, time(), COLOURS) for each in names}
            until = time() + SECONDS
        return drawn

    def look() -> str:
        nonlocal last
        try:
            on_cml = command.cml_of(settings, name, tenant)
            status = stack_status(settings, tenants, command.measured(cluster, settings, tenants), on_cml)
            nodes = Found() if without_kubernetes(settings) else live.nodes(cluster)
            last = replace(last, live=of_status(status, plan, nodes, drawn_now()), error="")
        except ClusterUnreachableError as error:
            if last.live is None:
                raise
            last = replace(last, error=f"the cluster could not be read again: {error}")
        return html(last)

    return look
