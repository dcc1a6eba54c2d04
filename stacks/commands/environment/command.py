"""`ray-platform preview|up|refresh|destroy|move-state`: runs one or several Pulumi stacks as one environment."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, Environment, ended, ending, stack_path

if TYPE_CHECKING:
    from stacks.commands.environment.driver import Operation, Options
    from stacks.commands.environment.workspace import Stacks
    from stacks.settings import StackSettings

INTERRUPTED = 130
"""Exit code: Ctrl-C. All processes have ended, and their state is written."""

ConfigFile = Annotated[
    Path | None, typer.Option(help="The stack file. Default: Pulumi.STACK.yaml.", envvar="PULUMI_OPTION_CONFIG_FILE")
]
Parallel = Annotated[int | None, typer.Option(min=1, help="Stacks at once. Default: as many as there are processors.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the preview and the question.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show each changed property.")]
Refresh = Annotated[bool, typer.Option("--refresh", help="Read from the cluster first.")]
PolicyPacks = Annotated[list[str] | None, typer.Option("--policy-pack", help="Folder of a policy pack.")]
Only = Annotated[list[str] | None, typer.Option(metavar="STACK", help="Only this of the environment's stacks.")]
Backups = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the old states are saved.")]
PreviewOnly = Annotated[bool, typer.Option("--preview-only", help="Show what differs, and change no state.")]
ExpectNoChanges = Annotated[bool, typer.Option("--expect-no-changes", help="Fail where the cluster differs.")]
Json = Annotated[bool, typer.Option("--json", help="The summary as JSON.")]


def preview(
    stack: Environment,
    config_file: ConfigFile = None,
    parallel: Parallel = None,
    diff: Diff = False,
    refresh: Refresh = False,
    policy_pack: PolicyPacks = None,
    only: Only = None,
    as_json: Json = False,
) -> None:
    """Show what `up` would change, in all stacks of the environment.

    Exit code: 0 all previews succeeded, 1 one failed, 2 wrong use.
    """
    stacks, settings = _loaded(stack, config_file)
    options = _options(parallel, only, diff, refresh, policy_pack)
    _run(stacks, settings, "preview", options, as_json)


def up(
    stack: Environment,
    config_file: ConfigFile = None,
    parallel: Parallel = None,
    yes: Yes = False,
    diff: Diff = False,
    refresh: Refresh = False,
    policy_pack: PolicyPacks = None,
    only: Only = None,
    as_json: Json = False,
) -> None:
    """Create or update all stacks of the environment: first the platform, then tenants at once.

    A failed stack does not stop the others; run the command again for the failed ones. Exit code: 0 all succeeded, 1 a
    stack failed, 2 wrong use, 130 interrupted.
    """
    if not yes:
        _needs_terminal("up")
    stacks, settings = _loaded(stack, config_file)
    options = _options(parallel, only, diff, refresh, policy_pack)
    if not yes:
        _run(stacks, settings, "preview", options, beside=as_json)
        typer.confirm("Run up?", abort=True, err=as_json)
    _run(stacks, settings, "up", options, as_json)


def refresh(
    stack: Environment,
    config_file: ConfigFile = None,
    parallel: Parallel = None,
    yes: Yes = False,
    preview_only: PreviewOnly = False,
    expect_no_changes: ExpectNoChanges = False,
    diff: Diff = False,
    only: Only = None,
    as_json: Json = False,
) -> None:
    """Update the states of the environment's stacks from the cluster.

    Exit code: 0 all succeeded, 1 a stack failed, or differs with --expect-no-changes, 2 wrong use, 130 interrupted.
    """
    if not (yes or preview_only):
        _needs_terminal("refresh")
        typer.confirm("Update the states from the cluster?", abort=True, err=as_json)
    stacks, settings = _loaded(stack, config_file)
    _in_its_cluster(stacks, settings)
    options = replace(_options(parallel, only, diff), preview_only=preview_only, expect_no_changes=expect_no_changes)
    _run(stacks, settings, "refresh", options, as_json)


def destroy(
    stack: Environment,
    config_file: ConfigFile = None,
    parallel: Parallel = None,
    yes: Yes = False,
    only: Only = None,
    as_json: Json = False,
) -> None:
    """Delete all objects of the environment's stacks from the cluster: tenants first, then the platform."""
    if not yes:
        _needs_terminal("destroy")
        typer.confirm(f"Delete all objects of {stack} from the cluster?", abort=True, err=as_json)
    stacks, settings = _loaded(stack, config_file)
    _in_its_cluster(stacks, settings)
    _run(stacks, settings, "destroy", _options(parallel, only), as_json)


def move_state(
    stack: Environment, config_file: ConfigFile = None, yes: Yes = False, backups: Backups = Path(".state-backups")
) -> None:
    """Move resources to the stacks that the stack file's `split` gives them to, from state to state.

    The cluster does not change. If it is interrupted, run it again. Exit code: 0 all resources are in their stacks, 1
    it failed, 2 wrong use.
    """
    from stacks.commands.environment.moving import MoveError, move, planned

    stacks, settings = _loaded(stack, config_file)
    from stacks.commands.environment.workspace import StacksError

    with ending(FOUND, MoveError, StacksError):
        plan = planned(stacks, settings)
        for line in plan.lines:
            typer.echo(line)
        if plan.moves and not yes:
            _needs_terminal("move-state")
            typer.confirm("Move them?", abort=True)
        move(stacks, plan, backups, typer.echo)


def _loaded(stack: str, config_file: Path | None) -> "tuple[Stacks, StackSettings]":
    from core.problems import StackFileError
    from stacks.commands.environment.workspace import Stacks, StacksError
    from stacks.load import load

    file = config_file or stack_path(stack.rpartition("/")[2])
    with ending(MISUSED, StackFileError, StacksError):
        settings = load(file)
        return Stacks(stack, file), settings


def _in_its_cluster(stacks: "Stacks", settings: "StackSettings") -> None:
    """Ends the command if the context leads to another cluster: for refreshes and deletions Pulumi does not start the
    program, which compares it otherwise."""
    from components.kubernetes_cluster import KubernetesCluster
    from stacks.commands.environment.workspace import StacksError
    from stacks.program.identity import OtherClusterError, connection_of, uid_of

    with ending(MISUSED, OtherClusterError, StacksError):
        stacks.existing()
        cluster = KubernetesCluster(connection_of(settings))
        uid_of(cluster, settings, stacks.outputs(stacks.environment))


def _options(
    parallel: int | None,
    only: list[str] | None,
    diff: bool = False,
    refresh: bool = False,
    policy_packs: list[str] | None = None,
) -> "Options":
    from stacks.commands.environment.driver import Options

    packs = tuple(str(Path(each).resolve()) for each in policy_packs or ())
    return Options(parallel or os.cpu_count() or 1, diff, refresh, packs, only=tuple(only or ()))


def _run(
    stacks: "Stacks",
    settings: "StackSettings",
    operation: "Operation",
    options: "Options",
    as_json: bool = False,
    *,
    beside: bool = False,
) -> None:
    """Runs an operation, and ends the command if it fails. `beside`: the summary goes to standard error, because the
    output is another command's JSON."""
    from stacks.commands.environment.driver import as_object, exit_code, progress, run, summary
    from stacks.commands.environment.workspace import StacksError

    signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        with progress(operation) as show:
            outcomes = run(stacks, settings, operation, options, show)
    except StacksError as error:
        raise ended(error, MISUSED) from error
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted: all processes have ended. Run `ray-platform {operation} {stacks.environment}` again",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(as_object(stacks.environment, operation, outcomes), indent=2))
    else:
        summary(stacks.environment, operation, outcomes, stderr=beside)
    if code := exit_code(outcomes):
        raise typer.Exit(code)


def _as_ctrl_c(_number: int, _frame: object) -> None:
    """Ends like Ctrl-C: each `pulumi` writes its state. The signal reaches them if this process leads its process
    group."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGINT)
    else:
        raise KeyboardInterrupt


def _needs_terminal(operation: str) -> None:
    if not sys.stdin.isatty():
        raise ended(f"`{operation}` asks before it changes anything, but there is no terminal: add --yes", MISUSED)
