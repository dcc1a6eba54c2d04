"""Runs commands that a terminal sends Ctrl-C to, and lets them end by themselves."""

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


def captured(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Runs a command like `foreground`, and returns its output. After Ctrl-C it raises KeyboardInterrupt, once the
    command has ended."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*command], cwd=folder, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    interrupted = False
    while process.returncode is None:
        try:
            # A second call continues: it must not have the input again.
            output, errors = process.communicate(None if interrupted else stdin)
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
