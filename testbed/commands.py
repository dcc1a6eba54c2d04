"""The commands of `ray-platform`, run in the process of a test."""

from typer.testing import CliRunner, Result

from stacks.__main__ import app


def stacks(*arguments: object, given: str | None = None) -> Result:
    """Runs one. `given`: its standard input."""
    return CliRunner().invoke(app, [str(each) for each in arguments], input=given)
