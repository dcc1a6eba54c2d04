"""Other programs, run for what they do: quiet when they succeed, quoted when they fail."""

import subprocess
from pathlib import Path

from local.errors import RehearsalError

LINES = 15
"""Of what a failed program said, the last."""


def run(*command: str | Path, cwd: Path | None = None, fails: bool = False) -> str:
    """Run a program and return its standard output. `fails`: it may.

    Raises:
        RehearsalError: it failed or is not there; with the end of what it said.
    """
    shown = " ".join(map(str, command[:4]))
    try:
        done = subprocess.run(
            [*map(str, command)], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise RehearsalError(f"{command[0]} is not on the PATH") from None
    if done.returncode != 0 and not fails:
        said = "\n  ".join(f"{done.stdout}{done.stderr}".strip().splitlines()[-LINES:])
        raise RehearsalError(f"`{shown} ...` failed with exit status {done.returncode}:\n  {said}")
    return done.stdout
