"""`python -m stacks`: what can be done with stack files without Pulumi; and with Pulumi, environments of several of its
stacks, and the recovery of one.

A command's function says its arguments; what it needs is imported when it runs, so that each starts quickly.
"""

import gc
import io
import sys

import typer

from .commands.adopt import adopt
from .commands.check import check
from .commands.environment import destroy, move_state, preview, refresh, up
from .commands.impact import impact
from .commands.import_ import import_
from .commands.plan import plan
from .commands.recover import recover
from .commands.schema import schema

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
