"""Runs other programs: no output if they succeed, the end of their output if they fail."""

import subprocess
from pathlib import Path

from local.errors import RehearsalError

LINES = 15
"""The number of last lines of a failed program's output that are shown."""


def run(*command: str | Path, cwd: Path | None = None, fails: bool = False) -> str:
    """Runs a program and returns its standard output. `fails`: it may fail.

    Raises:
        RehearsalError: it failed or is missing; with the end of its output.
    """
    shown = " ".join(map(str, command[:4]))
    try:
        done = subprocess.run(
            [*map(str, command)], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise RehearsalError(f"{command[0]} is not on the PATH") from None
    if done.returncode != 0 and not fails:
        output = "\n  ".join(f"{done.stdout}{done.stderr}".strip().splitlines()[-LINES:])
        raise RehearsalError(f"`{shown} ...` failed with exit status {done.returncode}:\n  {output}")
    return done.stdout
