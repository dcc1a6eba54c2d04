"""Passwords in files, read when they are needed: the volume of a Secret changes while the gateway runs."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)


def passwords(path: Path | None) -> tuple[bytes, ...]:
    """Those in a file, one per line. If it cannot be read now, those that were in it before; without a file none."""
    return _file(path).passwords() if path else ()


@cache
def _file(path: Path) -> _PasswordFile:
    return _PasswordFile(path)


class _PasswordFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[bytes, ...] = ()
        self._problem = ""

    def passwords(self) -> tuple[bytes, ...]:
        problem = ""
        try:
            self._known = tuple(line for line in self._path.read_bytes().splitlines() if line)
        except OSError as error:
            stay = "the passwords that were in it stay in use" if self._known else "there is no password"
            problem = f"{self._path} cannot be read ({error.strerror}): {stay}"
        if problem != self._problem:
            log.log(logging.ERROR if problem else logging.INFO, "%s", problem or f"{self._path} is readable again")
            self._problem = problem
        return self._known
