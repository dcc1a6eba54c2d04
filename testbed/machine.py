"""What a test needs of the machine, and what happens where the machine lacks it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

_BALLAST = "ballast"


def lacks(what: str) -> NoReturn:
    """Skips the test. With CI=true it fails, because continuous integration has to run it.

    `what`: what is missing, and how to get it; the summary shows it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """During the block a folder with its content is on a disk of its own, in memory. Needs root and the right to
    mount."""
    kept = folder.with_name(f"{folder.name}.kept")
    shutil.copytree(folder, kept, symlinks=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(kept)
        lacks(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
        yield
    finally:
        empty(folder)
        shutil.rmtree(kept)
        shutil.copytree(folder, kept, symlinks=True)
        subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder)
        kept.rename(folder)


def fill(disk: Path) -> None:
    """Fills a small disk."""
    with (disk / _BALLAST).open("ab", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            return


def empty(disk: Path) -> None:
    """Removes what `fill` has written."""
    (disk / _BALLAST).unlink(missing_ok=True)
