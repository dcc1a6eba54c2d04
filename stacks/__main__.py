"""`python -m stacks`: commands for stack files and for what runs of them, which need no Pulumi; and, with Pulumi,
commands for environments of several stacks and for the recovery of a stack.

A command's function declares its arguments. It imports what it needs when it runs, so that every command starts
quickly.
"""

import gc
import io
import sys

import typer

from stacks.adopt.command import adopt
from stacks.check.command import check
from stacks.environment.command import destroy, move_state, preview, refresh, up
from stacks.images.command import images
from stacks.impact.command import impact
from stacks.importing.command import import_
from stacks.manifests.command import render
from stacks.page.command import page
from stacks.planning.command import plan
from stacks.recovery.command import recover
from stacks.review.command import changes, review
from stacks.run.command import cancel, run
from stacks.runs.command import runs
from stacks.schema.command import schema
from stacks.show.command import show
from stacks.status.command import dashboard, logs, status, wake

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
