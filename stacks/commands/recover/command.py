"""`ray-platform recover`: repairs and continues after a killed command of Pulumi."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stacks.commands.check.command import MISUSED, ended, stack_path, stacks_here

if TYPE_CHECKING:
    from stacks.commands.recover.cli import Cli
    from stacks.commands.recover.repair import Finding

_UNREADABLE = (
    "\nThe state is incomplete: replace it by an earlier version (docs/operations.md, The state cannot be read), then "
    "run this command again"
)

_CONFIG_FILE = "PULUMI_OPTION_CONFIG_FILE"
"""The variable in which Pulumi takes the option `--config-file`."""

FAILED = 1
"""Exit code: the stack could not be recovered."""


def recover(
    stack: Annotated[
        str,
        typer.Argument(
            metavar="STACK",
            help="The stack, as `pulumi --stack` takes it; or an environment.",
            autocompletion=stacks_here,
        ),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="Further arguments of `up`.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing, as `pulumi up --yes`.")] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Also remove the lock of a process on another machine, or in Pulumi Cloud.")
    ] = False,
    state_only: Annotated[
        bool, typer.Option("--state-only", help="Only repair the state, as before `pulumi destroy`.")
    ] = False,
) -> None:
    """Continue after a killed `pulumi up`: repair the stack's state, then run `pulumi up`.

    Removes the lock of an ended process, adds the objects that the stack has created in the cluster to the state, and
    removes operations that were begun but not completed. Never adds an object that this stack did not create. For a
    split environment it repairs all of its stacks, then runs `ray-platform up`.

    Exit code: 0 the stack matches its stack file, 2 the command is used incorrectly, otherwise it does not match.
    """
    from components.cluster import ClusterUnreachableError
    from core.foreground import foreground
    from stacks.commands.environment.workspace import StacksError
    from stacks.commands.recover.cli import Cli, LockedError, PulumiError
    from stacks.commands.recover.repair import ForeignObjectsError

    if not yes and not sys.stdin.isatty():
        raise ended("error: there is no terminal to ask on: add --yes", MISUSED)
    try:
        with _scope(stack) as scope:
            pulumis = [Cli(each, environment=scope.variables) for each in scope.stacks]
            _repair(pulumis, yes, cancel)
            if state_only:
                return
            options = [*(["--yes"] if yes else []), *(arguments or [])]
            if not scope.whole:
                raise typer.Exit(pulumis[0].show("up", *options))
    except (PulumiError, LockedError, ClusterUnreachableError, ForeignObjectsError, StacksError) as error:
        advice = _UNREADABLE if "failed to load checkpoint" in str(error) else ""
        raise ended(f"error: {error}{advice}", FAILED) from error
    raise typer.Exit(foreground([sys.executable, "-m", "stacks", "up", stack, *options]))


@dataclass(frozen=True)
class _Scope:
    stacks: Sequence[str]
    whole: bool
    """Whether these are the stacks of a split environment."""

    variables: Mapping[str, str]
    """Environment variables for Pulumi."""


@contextmanager
def _scope(stack: str) -> Iterator[_Scope]:
    """The stacks of a split environment read its one stack file, as in `ray-platform up`."""
    from core.environment import environment_of
    from core.problems import StackFileError
    from core.stack_file import PREFIX, read, stack_file
    from stacks.commands.environment.workspace import Stacks, configuration_of

    environment = environment_of(stack)
    file = Path(os.environ.get(_CONFIG_FILE) or stack_path(environment.rpartition("/")[2]))
    try:
        split = f"{PREFIX}split" in stack_file(file, read(file)).config
    except StackFileError:
        split = False  # the preview reports it
    if not split:
        yield _Scope([stack], False, os.environ)
        return
    whole = stack == environment
    stacks = sorted(Stacks(environment, file).existing()) if whole else [stack]
    with configuration_of(file) as made:
        yield _Scope(stacks, whole, {**os.environ, _CONFIG_FILE: str(made)})


def _repair(pulumis: "Sequence[Cli]", yes: bool, cancel: bool) -> None:
    """Repairs the states of these stacks. Asks before it changes one."""
    from concurrent.futures import ThreadPoolExecutor

    from stacks.commands.recover.repair import examine, repair

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        findings = list(threads.map(examine, pulumis))
    for pulumi, first in zip(pulumis, findings, strict=True):
        finding, title = first, f"{pulumi.stack}: " if len(pulumis) > 1 else ""
        while True:
            for line in _lines(finding):
                typer.echo(f"{title}{line}")
            if not finding.consistent and not yes:
                typer.confirm("Change the state like this?", abort=True)
            for holder in repair(pulumi, finding, elsewhere=cancel):
                typer.echo(f"{title}removed the lock of {holder}")
            if not finding.incomplete:
                break
            finding = examine(pulumi)


def _lines(finding: "Finding") -> list[str]:
    own = {candidate.urn for candidate in finding.existing.own}
    begun = [each for each in finding.pending if each["resource"]["urn"] not in own]
    return [
        *(f"to be added to the state: {candidate}, which this stack created" for candidate in finding.existing.own),
        *(f"unknown whether completed: {each['type']} {each['resource']['urn'].rpartition('::')[2]}" for each in begun),
        *(["The state has all objects that this stack created."] if finding.consistent else []),
    ]
