"""`python -m stacks`: commands for stack files and for what runs of them, which need no Pulumi; and, with Pulumi,
commands for environments of several stacks and for the recovery of a stack.

A command's function declares its arguments. It imports what it needs when it runs, so that every command starts
quickly.
"""

import gc
import io
import sys

import typer

from .adopt.command import adopt
from .check.command import check
from .environment.command import destroy, move_state, preview, refresh, up
from .images.command import images
from .impact.command import impact
from .importing.command import import_
from .manifests.command import render
from .page.command import page
from .planning.command import plan
from .recovery.command import recover
from .review.command import changes, review
from .run.command import cancel, run
from .runs.command import runs
from .schema.command import schema
from .show.command import show
from .status.command import dashboard, logs, status, wake

app = typer.Typer(
    help="Work with stack files.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.command()(check)
app.command()(plan)
app.command()(impact)
app.command()(review)
app.command()(changes)
app.command()(schema)
app.command()(show)
app.command()(images)
app.command()(render)
app.command("import")(import_)
app.command()(adopt)
app.command()(status)
app.command()(page)
app.command()(logs)
app.command()(dashboard)
app.command()(run)
app.command()(cancel)
app.command()(runs)
app.command()(wake)
for each in (preview, up, refresh, destroy, move_state, recover):
    app.command()(each)

if __name__ == "__main__":
    # A command's objects live as long as the command: searching them for cycles takes a sixth of a large file's time.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal with another encoding shows question marks for characters that it does not have.
            stream.reconfigure(errors="replace")
    app(prog_name="python -m stacks")
