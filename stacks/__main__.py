"""`python -m stacks`: commands for stack files and for what runs of them, which need no Pulumi; and, with Pulumi,
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

try:
    import typer
except ModuleNotFoundError:
    sys.exit(
        f"{sys.executable} does not have the packages of this project: use .venv/bin/python -m stacks, which make "
        "installs, or run pip install --require-hashes -r requirements.txt"
    )

from stacks.commands.adopt.command import adopt
from stacks.commands.check.command import MISUSED, check
from stacks.commands.environment.command import destroy, move_state, preview, refresh, up
from stacks.commands.images.command import images
from stacks.commands.impact.command import impact
from stacks.commands.importing.command import import_
from stacks.commands.page.command import page
from stacks.commands.plan.command import plan
from stacks.commands.recover.command import recover
from stacks.commands.render.command import render
from stacks.commands.review.command import changes, review
from stacks.commands.run.command import cancel, run
from stacks.commands.runs.command import runs
from stacks.commands.schema.command import schema
from stacks.commands.show.command import show
from stacks.commands.status.command import dashboard, logs, status, wake

_PROGRAM = "ray-platform"
"""Name of the script that a wheel installs."""

app = typer.Typer(
    help="Work with stack files.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for panel, commands in {
    "Check and plan": (check, plan, impact, review, changes, show, images, schema),
    "Apply": (preview, up, refresh, destroy, recover, move_state, render),
    "Look": (status, page, logs, dashboard, runs),
    "Run": (run, cancel, wake),
    "Bring in": (import_, adopt),
}.items():
    for each in commands:
        app.command(each.__name__.strip("_").replace("_", "-"), rich_help_panel=panel)(each)


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
            app(prog_name=_PROGRAM if Path(sys.argv[0]).name == _PROGRAM else "python -m stacks")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename:
            raise
        print(f"the standard output cannot be written: {error.strerror}", file=sys.stderr, flush=True)
        # Python would try to write it once more.
        os._exit(MISUSED)


if __name__ == "__main__":
    main()
