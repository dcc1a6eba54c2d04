"""`python -m stacks recover`: repairs and continues after a killed command of Pulumi."""

import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from .repair import Finding

_UNREADABLE = (
    "\nThe state is not whole: put an earlier version in its place (docs/operations.md, The state cannot be read), "
    "then run this command again"
)

FAILED, MISUSED = 1, 2
"""Exit codes: the stack could not be recovered; the command cannot be run as given."""


def recover(
    stack: Annotated[str, typer.Argument(help="The stack, as `pulumi --stack` takes it.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="Further arguments of `pulumi up`.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing, as `pulumi up --yes`.")] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Take away the lock of a process on another machine, too.")
    ] = False,
    state_only: Annotated[
        bool, typer.Option("--state-only", help="Only put the state right, as before `pulumi destroy`.")
    ] = False,
) -> None:
    """Go on after a `pulumi up` that was killed: put the stack's state right, then run `pulumi up`.

    Takes away the lock of a process that has ended, takes into the state what the stack has made in the cluster, and
    forgets what it had begun to make and did not. An object that this stack did not make is never taken in.

    Exit code: 0 the stack is as its file says, 2 the command is not used right, otherwise it is not as its file says.
    """
    from components.cluster import ClusterUnreachableError

    from .cli import Cli, LockedError, PulumiError
    from .repair import ForeignObjectsError, examine, repair

    if not yes and not sys.stdin.isatty():
        _stop("there is nobody to ask here: add --yes", MISUSED)
    pulumi = Cli(stack)
    try:
        incomplete = True
        while incomplete:
            finding = examine(pulumi)
            for line in _lines(finding):
                typer.echo(line)
            if not finding.sound and not yes:
                typer.confirm("Put this into the state?", abort=True)
            for holder in repair(pulumi, finding, elsewhere=cancel):
                typer.echo(f"lock taken away: that of {holder}")
            incomplete = finding.incomplete
    except (PulumiError, LockedError, ClusterUnreachableError, ForeignObjectsError) as error:
        _stop(f"{error}{_UNREADABLE if 'failed to load checkpoint' in str(error) else ''}", FAILED)
    if not state_only:
        raise typer.Exit(pulumi.show("up", *(["--yes"] if yes else []), *(arguments or [])))


def _lines(finding: "Finding") -> list[str]:
    own = {wanted.urn for wanted in finding.existing.own}
    begun = [each for each in finding.pending if each["resource"]["urn"] not in own]
    return [
        *(f"to be taken into the state: {wanted}, which this stack made" for wanted in finding.existing.own),
        *(f"not known to have ended: {each['type']} {each['resource']['urn'].rpartition('::')[2]}" for each in begun),
        *(["The state has all that this stack made."] if finding.sound else []),
    ]


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)
