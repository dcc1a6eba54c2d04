"""The root of an image: packages of this machine's distribution, from the mirrors in its apt configuration."""

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from local.commands import run
from local.errors import RehearsalError

WITHOUT = ("doc", "man", "locale")
"""Folders of /usr/share that are useless in a container."""

SOURCES = tuple(
    Path("/etc/apt") / name
    for name in ("sources.list.d/debian.sources", "sources.list.d/ubuntu.sources", "sources.list")
)
"""The files in which apt of this machine has the mirrors."""


def codename() -> str | None:
    """The release of the distribution, e.g. `bookworm`. None if this machine runs neither Debian nor Ubuntu."""
    try:
        return platform.freedesktop_os_release()["VERSION_CODENAME"]
    except (OSError, KeyError):
        return None


def install(files: Path, packages: Sequence[str]) -> None:
    """Fills a folder with the distribution and these packages of it.

    Raises:
        RehearsalError: this machine has no such distribution, or the packages cannot be installed; with the output.
    """
    release = codename()
    if release is None:
        raise RehearsalError("images are made from a Debian or an Ubuntu, and this machine has neither")
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in WITHOUT]
    run("mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", *excluded, release, files, _sources())


def run_in(files: Path, *command: str, fails: bool = False) -> str:
    """Runs a program in such a folder and returns its standard output. `fails`: it may fail.

    Raises:
        RehearsalError: it failed; with the end of its output.
    """
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    return run("chroot", files, "/usr/bin/env", "-i", f"PATH={path}", "LANG=C.UTF-8", *command, fails=fails)


def pins() -> str:
    """All values that determine the files, beside the names of the packages."""
    return f"{codename()}{Path(__file__).read_text()}"


def _sources() -> Path:
    for file in SOURCES:
        if file.is_file() and re.search(r"(?m)^\s*(deb|URIs)\b", file.read_text()):
            return file
    raise RehearsalError(f"apt has no sources: none of {', '.join(map(str, SOURCES))} names any")
