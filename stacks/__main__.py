"""`ray-platform`: commands for stack files and for what runs of them, which need no Pulumi; and, with Pulumi,
commands for environments of several stacks and for the recovery of a stack.

A command's function declares its arguments. It imports what it needs when it runs, so that every command starts
quickly.
"""

import errno
import gc
import io
import os
import sys
from pathlib import Path
from typing import Annotated

try:
    import typer
except ModuleNotFoundError:
    sys.exit(
        f"{sys.executable} lacks the packages of ray-platform. In a checkout `make .venv/installed` installs them into "
        ".venv, which bin/ray-platform uses; elsewhere run `pip install --require-hashes -r requirements.txt`"
    )

from policies.command import policies
from stacks.commands.adopt.command import adopt
from stacks.commands.check.command import MISUSED, check
from stacks.commands.cml.command import cml
from stacks.commands.environment.command import destroy, move_state, preview, refresh, up
from stacks.commands.images.command import images
from stacks.commands.impact.command import impact
from stacks.commands.importing.command import import_
from stacks.commands.page.command import page
from stacks.commands.plan.command import plan
from stacks.commands.recover.command import recover
from stacks.commands.render.command import render
from stacks.commands.review.command import changes, review
from stacks.commands.run.command import RunCommand, cancel, run
from stacks.commands.runs.command import runs
from stacks.commands.schema.command import schema
from stacks.commands.show.command import show
from stacks.commands.status.command import dashboard, logs, status, wake

_PROGRAM = "ray-platform"
"""Name of bin/ray-platform, and of the script that a wheel installs."""

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"{_PROGRAM} {_version()}")
        raise typer.Exit


def _version() -> str:
    import tomllib
    from importlib import metadata

    project = Path(__file__).parents[1] / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    return metadata.version(_PROGRAM)


@app.callback()
def ray_platform(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Check, plan, apply and look at stacks of Ray on Kubernetes.

    STACK is NAME for Pulumi.NAME.yaml in this folder, or the path of a stack file.
    """


for panel, commands in {
    "Check and plan": (check, plan, impact, review, policies, changes, show, images, schema),
    "Apply": (preview, up, refresh, destroy, recover, move_state, render),
    "Look": (status, page, logs, dashboard, runs),
    "Run": (run, cancel, wake),
    "Bring in": (import_, adopt),
}.items():
    for each in commands:
        app.command(
            each.__name__.strip("_").replace("_", "-"),
            cls=RunCommand if each is run else None,
            rich_help_panel=panel,
        )(each)
app.add_typer(cml, name="cml", rich_help_panel="Run")


_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)
"""Why a file is not written, beside a fault of the command."""


def main() -> None:
    """Runs the command, also as the script of the wheel. What it has printed is written before it ends: a full disk is
    not a finding."""
    # A command's objects live as long as the command: searching them for cycles takes a sixth of a large file's time.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal with another encoding shows question marks for characters that it does not have.
            stream.reconfigure(errors="replace")
    if sys.stdout is None:
        print("the standard output is closed: redirect it to /dev/null", file=sys.stderr)
        sys.exit(MISUSED)
    try:
        try:
            app(prog_name=_PROGRAM)
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename and error.errno in _NOT_WRITABLE:
            print(f"{error.filename} cannot be written: {error.strerror}", file=sys.stderr)
            sys.exit(MISUSED)
        if error.errno != errno.ENOSPC:
            raise
        print(f"the standard output cannot be written: {error.strerror}", file=sys.stderr, flush=True)
        # Python would try to write it once more.
        os._exit(MISUSED)


if __name__ == "__main__":
    main()
