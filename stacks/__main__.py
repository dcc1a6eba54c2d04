"""`python -m stacks`: what can be done with stack files without Pulumi; and with Pulumi, environments of several of its
stacks, and the recovery of one.

A command's function says its arguments; what it needs is imported when it runs, so that each starts quickly.
"""

import gc
import io
import sys

import typer

from .adopt.command import adopt
from .check.command import check
from .environment.command import destroy, move_state, preview, refresh, up
from .impact.command import impact
from .importing.command import import_
from .planning.command import plan
from .recovery.command import recover
from .schema.command import schema

app = typer.Typer(
    help="Work with stack files.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.command()(check)
app.command()(plan)
app.command()(impact)
app.command()(schema)
app.command("import")(import_)
app.command()(adopt)
for each in (preview, up, refresh, destroy, move_state, recover):
    app.command()(each)

if __name__ == "__main__":
    # What a command makes lasts as long as the command: to look for cycles in it takes a sixth of a large file's time.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal of another encoding shows question marks for what it does not have.
            stream.reconfigure(errors="replace")
    app(prog_name="python -m stacks")
