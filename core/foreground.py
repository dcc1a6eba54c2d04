"""Runs a command on this terminal."""

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def foreground(
    command: Sequence[str | Path], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> int:
    """Runs a command, and returns its exit code once it has ended, also after Ctrl-C.

    A terminal sends Ctrl-C to the command, too. `subprocess.run` would kill it a quarter of a second later, but Pulumi
    has to finish its current step and write its state.
    """
    process = subprocess.Popen([*command], cwd=folder, env=environment and dict(environment))
    while process.returncode is None:
        with suppress(KeyboardInterrupt):
            process.wait()
    return process.returncode
