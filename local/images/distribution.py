"""The root of an image: packages of the distribution that this machine has, from the mirrors that its apt knows."""

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from local.commands import run
from local.errors import RehearsalError

WITHOUT = ("doc", "man", "locale")
"""Folders of /usr/share that nobody reads in a container."""

SOURCES = tuple(
    Path("/etc/apt") / name
    for name in ("sources.list.d/debian.sources", "sources.list.d/ubuntu.sources", "sources.list")
)
"""Where apt of this machine is told of its distribution's mirrors."""


def codename() -> str | None:
    """The release of the distribution, e.g. `bookworm`. None where this machine has neither a Debian nor an Ubuntu."""
    try:
        return platform.freedesktop_os_release()["VERSION_CODENAME"]
    except (OSError, KeyError):
        return None


def install(files: Path, packages: Sequence[str]) -> None:
    """Fill a folder with the distribution and these packages of it.

    Raises:
        RehearsalError: this machine has no such distribution, or the packages cannot be had; with what was said.
    """
    release = codename()
    if release is None:
        raise RehearsalError("images are made from a Debian or an Ubuntu, and this machine has neither")
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in WITHOUT]
    run("mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", *excluded, release, files, _sources())


def run_in(files: Path, *command: str, fails: bool = False) -> str:
    """Run a program in such a folder and return its standard output. `fails`: it may.

    Raises:
        RehearsalError: it failed; with the end of what it said.
    """
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    return run("chroot", files, "/usr/bin/env", "-i", f"PATH={path}", "LANG=C.UTF-8", *command, fails=fails)


def pins() -> str:
    """What decides which files there are, beside the names of the packages."""
    return f"{codename()}{Path(__file__).read_text()}"


def _sources() -> Path:
    for file in SOURCES:
        if file.is_file() and re.search(r"(?m)^\s*(deb|URIs)\b", file.read_text()):
            return file
    raise RehearsalError(f"apt has no sources: none of {', '.join(map(str, SOURCES))} names any")
