"""Durations of the steps, for the table at the end."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

WAIT_SECONDS = 300.0
"""Seconds to wait for a condition. Most are true within 30 seconds on an idle machine with two cores."""

TABLE = pytest.StashKey[list[tuple[str, float]]]()


class Steps:
    """Steps and their seconds, in the order in which they ended."""

    def __init__(self, table: list[tuple[str, float]]) -> None:
        self._table = table

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Measures its block; a failed step is in the table, too."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.took(title, time.monotonic() - begin)

    def took(self, title: str, seconds: float) -> None:
        """Adds a step that something else has measured."""
        self._table.append((title, seconds))


def until(true: Callable[[], object], what: str, seconds: float = WAIT_SECONDS, pause: float = 1.0) -> None:
    """Waits for a condition; fails the test, with `what`, after that many seconds.

    `pause`: seconds between two looks, each of which takes CPU from what it waits for: kubectl a fifth of a second of a
    core, a command of Ray two seconds.
    """
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not: {what}"
        time.sleep(pause)


def until_successful(ask: Callable[[], httpx.Response], what: str) -> None:
    """Waits for a successful answer of a server that starts on this machine; fails the test, with `what`, after
    WAIT_SECONDS."""

    def answers() -> bool:
        try:
            return ask().is_success
        except httpx.TransportError:
            return False

    until(answers, what, pause=0.1)


def until_printed(process: "subprocess.Popen[str]", text: str) -> None:
    """Waits for a line with a text in the output of a process; fails the test if the process ends before."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if text in line:
            return
    raise AssertionError(f"it has ended without printing {text!r}:\n{output}")
