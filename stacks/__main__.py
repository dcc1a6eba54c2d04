"""`python -m stacks`: what can be done with stack files without Pulumi.

A command's function says its arguments; what it needs is imported when it runs, so that each starts quickly.
"""

import io
import sys

import typer

from .commands.adopt import adopt
from .commands.check import check
from .commands.impact import impact
from .commands.import_ import import_
from .commands.plan import plan
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

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal of another encoding shows question marks for what it does not have.
            stream.reconfigure(errors="replace")
    app(prog_name="python -m stacks")
