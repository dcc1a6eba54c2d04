"""Puts tools into the cache: built here, taken from the PATH, or downloaded."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import paths
from local.errors import RehearsalError
from local.install.origin import Origin, origin
from local.tools import TOOLS, Tool


def install_missing(tools: tuple[Tool, ...] = TOOLS) -> None:
    """Installs missing tools into the cache, from the origin that `TOOLS` sets, and shows the progress.

    Raises:
        RehearsalError: `TOOLS` has a bad value; a mirror lacks a tool; a file has the wrong checksum; Go is missing or
            too old; a build failed. The cache then has no part of that tool.
    """
    where = origin()
    missing = [tool for tool in tools if not tool.installed]
    if missing:
        where.check(missing)
    for number, tool in enumerate(missing, start=1):
        install(tool, where, f"({number}/{len(missing)})")


def install(tool: Tool, where: Origin, position: str = "") -> None:
    """Installs one tool; a second process that needs the same tool waits and then uses it."""
    with _only_one(tool):
        if tool.installed:
            return
        tool.folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{tool.name}-", dir=tool.folder.parent))
        try:
            (scratch / "bin").mkdir()
            where.install(tool, scratch, position)
            scratch.rename(tool.folder)
        except OSError as error:
            raise RehearsalError(f"{tool.name} cannot be installed into {tool.folder.parent}: {error}") from None
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _only_one(tool: Tool) -> Iterator[None]:
    lock = paths.cache() / "locks" / tool.folder.name
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
