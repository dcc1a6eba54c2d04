"""`python -m local`: the rehearsal's commands, which the Makefile calls.

A command imports what it needs when it runs, so that every command starts quickly.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from local import paths
from local.errors import RehearsalError, message_of
from local.plugins import select
from local.proxies import EXCEPTIONS, corrections

if TYPE_CHECKING:
    from local.rehearsal import Rehearsal
    from stacks.settings import StackSettings

app = typer.Typer(
    help="Rehearse a stack on this machine: real Kubernetes, real operator, real Pulumi, simulated nodes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Stack = Annotated[str, typer.Option(help="Which Pulumi.STACK.yaml to use.")]
Plugins = Annotated[
    Literal["auto", "real", "stand-in"],
    typer.Option(envvar="PLUGINS", help="The plugins of your Pulumi, ours, or whichever exists."),
]
Nodes = Annotated[
    Literal["simulated", "real"] | None,
    typer.Option(envvar="NODES", help="Simulated nodes, or one with real pods. Default: as before, else simulated."),
]
Policies = Annotated[
    bool,
    typer.Option(
        "--policies/--no-policies", envvar="POLICIES", help="Validate the stack against the policy pack's rules."
    ),
]
Monitoring = Annotated[bool, typer.Option("--monitoring", envvar="MONITORING", help="Also start a Prometheus.")]


@app.command()
def up(
    stack: Stack = "dev",
    plugins: Plugins = "auto",
    nodes: Nodes = None,
    policies: Policies = True,
    monitoring: Monitoring = False,
) -> None:
    """Install what is missing, start the cluster, and run `pulumi up`, also after a command that was killed."""
    from local import report
    from local.install import install_missing
    from local.progress import console, step
    from local.pulumi import POLICY_PACK, RehearsalStack
    from local.rehearsal import Rehearsal
    from stacks.objects.stack import images_of

    selection = select(plugins, os.environ)
    settings = _settings(stack)
    rehearsal = Rehearsal(paths.RUN, nodes)
    images = images_of(settings)
    rehearsal.placement.check(images)
    if monitoring:
        Rehearsal.check_monitoring()
    install_missing(selection.tools)
    rehearsal.placement.build(images)
    with rehearsal.exclusively():
        with step("Starting the cluster") as progress:
            rehearsal.start(settings.nodes, progress)
            rehearsal.placement.load(images)
        if monitoring:
            rehearsal.monitor(settings)
        report.parts(selection)
        pulumi = RehearsalStack(rehearsal, selection, stack)
        quiet = () if console.is_terminal else ("--suppress-progress",)
        rules = POLICY_PACK if policies else ()
        arguments = ("--skip-preview", "--suppress-outputs", *rules, *quiet)
        pulumi.up(*arguments)
        if pulumi.split:
            report.nodes(rehearsal)
            report.clusters(rehearsal)
        else:
            report.result(rehearsal, pulumi)
        report.pages(rehearsal, stack)


@app.command()
def down(
    clean: Annotated[bool, typer.Option("--clean", help="Remove all rehearsals with their data.")] = False,
) -> None:
    """Stop the cluster; its data stay for the next `up`. --clean removes them, and rehearsals of stacks."""
    from local.runs import stop

    stop(clean)


@app.command()
def status() -> None:
    """Show what runs, and the clusters with their state. The exit code is 1 if a part has ended by itself."""
    from local import report
    from local.pulumi import environments
    from local.rehearsal import Rehearsal
    from local.runs import show_others

    rehearsal = Rehearsal(paths.RUN)
    report.processes(rehearsal)
    if rehearsal.states():
        rehearsal.check()
        report.nodes(rehearsal)
        report.clusters(rehearsal)
        if rehearsal.kind == "real":
            report.pods(rehearsal)
        report.pages(rehearsal, *environments(rehearsal.run))
    show_others()


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def page(context: typer.Context, stack: Stack = "dev") -> None:
    """Serve a page of the stack with what runs now in the rehearsal (`ray-platform page`), until Ctrl-C."""
    from local.page import serve
    from local.pulumi import stack_file

    _settings(stack)
    serve(_running().kubeconfig, stack_file(stack), context.args)


@app.command()
def kubeconfig() -> None:
    """Print the path of the cluster's kubeconfig."""
    print(_running().kubeconfig)


@app.command()
def env(stack: Stack = "dev") -> None:
    """Print what puts `ray-platform`, `pulumi` and `kubectl` for the rehearsal on the PATH: eval "$(make -s env)"."""
    from local.rehearsal import write_commands

    rehearsal = _running()
    folders = (write_commands(rehearsal, stack), paths.ROOT / "bin")
    print(f'export PATH={":".join(shlex.quote(str(each)) for each in folders)}:"$PATH"')
    print(f"export KUBECONFIG={shlex.quote(str(rehearsal.kubeconfig))}")
    for name, exceptions in corrections(os.environ).items():
        if name in EXCEPTIONS:
            print(f"export {name}={shlex.quote(exceptions)}")


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def pulumi(context: typer.Context, stack: Stack = "dev", plugins: Plugins = "auto") -> None:
    """Run `pulumi` with these arguments against the rehearsal."""
    from local.pulumi import RehearsalStack

    raise typer.Exit(RehearsalStack(_running(), select(plugins, os.environ), stack).run(*context.args, check=False))


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def environment(context: typer.Context, stack: Stack = "dev", plugins: Plugins = "auto") -> None:
    """Preview, refresh or destroy the environment: with `pulumi`, or with `ray-platform` where it is split."""
    from local.pulumi import RehearsalStack

    made = RehearsalStack(_running(), select(plugins, os.environ), stack)
    raise typer.Exit(made.run(*context.args, check=False, whole=True))


@app.command()
def build(
    tests: Annotated[bool, typer.Option("--tests", help="Also what only tests need.")] = False, nodes: Nodes = None
) -> None:
    """Install the tools that the cache does not hold yet; for the real node, where it can run, also all images."""
    from local import tools
    from local.images import AHEAD
    from local.install import install_missing
    from local.real_node import RealNode, unmet

    install_missing((*tools.TOOLS, *(tools.TEST_TOOLS if tests else ())))
    if nodes == "real" and not unmet():
        RealNode(paths.RUN).build(image.reference for image in AHEAD)


@app.command()
def mirror(folder: Annotated[Path, typer.Argument(help="Where to, for example what a web server serves.")]) -> None:
    """Write an archive of each tool in the cache, and their checksums: a mirror, for TOOLS=FOLDER or its URL."""
    from local import tools
    from local.install import install_missing
    from local.install.mirror import PIN, write_mirror
    from local.progress import console

    console.stderr = True
    install_missing()
    pin = write_mirror(folder, [tool for tool in tools.ALL if tool.installed])
    print(f"TOOLS={folder.resolve()}{PIN}{pin}")
    if others := ", ".join(tool.name for tool in tools.ALL if not tool.installed):
        console.print(f"Not in the cache, so not in the mirror: {others} (docs/tools.md)", soft_wrap=True)


@app.command()
def pin_releases() -> None:
    """Download what projects publish of the tools and has no pin yet, and pin its checksums (docs/tools.md)."""
    from local.install import releases

    for url in releases.pin_releases():
        print(f"pinned {url}")


@app.command()
def rehearse(
    stack: Stack = "dev",
    plugins: Plugins = "auto",
    output: Annotated[
        Literal["text", "json", "markdown"], typer.Option("--format", help="For a terminal, programs, a pull request.")
    ] = "text",
    ask: Annotated[
        bool, typer.Option("--demand/--no-demand", help="Let all tenants request their largest workers.")
    ] = True,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the cluster afterwards.")] = False,
    end: Annotated[bool, typer.Option("--end", help="Only remove a cluster that was kept.")] = False,
    policies: Policies = True,
) -> None:
    """Bring a stack up at its real size on a cluster of its own, and compare it with its plan.

    The exit code is 1 where something is not ready, was refused, or is not as the plan predicted.
    """
    from local import report
    from local.progress import console
    from local.pulumi import stack_file
    from local.rehearse.session import Session, folder
    from local.rehearse.signals import end_as_after_ctrl_c

    end_as_after_ctrl_c()
    console.stderr = output != "text"
    _settings(stack)
    session = Session(stack, stack_file(stack), select(plugins, os.environ), folder(stack), policies)
    if end:
        session.end()
        return
    rehearsed = session.run(ask, keep)
    report.rehearsed(rehearsed, output)
    if keep:
        kept = f"export KUBECONFIG={shlex.quote(str(session.rehearsal.kubeconfig))}"
        console.print(f"The cluster still exists: {kept}; remove it with --end", soft_wrap=True)
    if not rehearsed.well:
        raise typer.Exit(1)


def _running() -> Rehearsal:
    from local.rehearsal import Rehearsal

    rehearsal = Rehearsal(paths.RUN)
    if not rehearsal.states():
        raise RehearsalError("the rehearsal does not run: start it with `make up`")
    return rehearsal


def _settings(stack: str) -> StackSettings:
    from local.pulumi import missing, stack_file
    from stacks.load import load

    file = stack_file(stack)
    if not file.is_file():
        raise missing(file)
    return load(file)


def main() -> int:
    """Run a command; an error is one message on standard error and exit status 1, or 2 for a wrong argument."""
    os.environ.update(corrections(os.environ))
    try:
        return cast("int", app(standalone_mode=False) or 0)
    except typer.Abort:
        print("interrupted", file=sys.stderr)
        return 130
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        if (message := message_of(error)) is None:
            raise
        print(f"error: {message}", file=sys.stderr)
        return error.exit_code if isinstance(error, typer.TyperException) else 1


if __name__ == "__main__":
    sys.exit(main())
