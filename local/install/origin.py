"""Where tools come from: the setting `TOOLS`.

`auto` is the fastest source: programs of the machine's PATH, then their projects' releases, and the compiler for the
rest. `build` builds all; any other value is a mirror.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from local.errors import RehearsalError
from local.install import search_path
from local.install.build import Build, build, require_go
from local.install.checksums import DIGEST
from local.install.mirror import PIN, Mirror
from local.install.releases import Releases
from local.progress import console
from local.tools import Tool


class Auto:
    """Takes each program from the first of the three sources that has exactly the pinned version."""

    def __init__(self) -> None:
        self._releases = Releases()

    def check(self, tools: Sequence[Tool]) -> None:
        """Unpublished programs are built. So Go is required, and this fails before anything is downloaded if it is
        missing or too old."""
        if unpublished := [tool for tool in tools if tool.release is None]:
            require_go(unpublished)

    def install(self, tool: Tool, target: Path, position: str) -> None:
        left = dict(tool.programs)
        for program in tool.programs:
            if found := search_path.find(program, tool.version):
                console.print(f"Copying {program} {tool.version} from {found}", soft_wrap=True)
                shutil.copyfile(found, target / "bin" / program)
                (target / "bin" / program).chmod(0o755)
                del left[program]
        for program in self._releases.install(tool, left, target / "bin", position):
            del left[program]
        build(tool, left, target, position)


class Origin(Protocol):
    """Where tools come from."""

    def check(self, tools: Sequence[Tool]) -> None:
        """Checks the requirements of these tools before the first is installed.

        Raises:
            RehearsalError: a requirement is missing.
        """

    def install(self, tool: Tool, target: Path, position: str) -> None:
        """Writes the tool's programs to `target`/bin and its files to `target`/share, and shows the progress.

        `position`: the tool's number and the number of tools to install: `(2/5)`.

        Raises:
            RehearsalError: it failed; the content of `target` is discarded.
        """


def origin(setting: str | None = None) -> Origin:
    """The origin that `TOOLS` sets, or this setting instead of it.

    Raises:
        RehearsalError: the value is not allowed.
    """
    setting = os.environ.get("TOOLS", "") if setting is None else setting
    if setting in ("", "auto"):
        return Auto()
    if setting == "build":
        return Build()
    address, marked, pin = setting.partition(PIN)
    if marked and not DIGEST.fullmatch(pin):
        raise RehearsalError(
            f"TOOLS pins the checksums of its mirror by {pin!r}; a SHA-256 digest is 64 of 0-9 and a-f, "
            "as `sha256sum SHA256SUMS` prints it"
        )
    return Mirror(_url(address, pinned=bool(marked)), pin or None)


def _url(address: str, pinned: bool) -> str:
    """The mirror's address; a folder becomes a URL, too."""
    if "://" not in address:
        folder = Path(address).expanduser()
        if not folder.is_dir():
            raise RehearsalError(
                f"TOOLS is {address!r}; allowed are auto, build, and a mirror: the https:// URL of one, or a folder, "
                "and there is no folder of that name"
            )
        return folder.resolve().as_uri()
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError as error:
        raise RehearsalError(f"TOOLS is {address!r}, which is not a URL: {error}") from None
    if parts.username is not None or parts.query or parts.fragment:
        raise RehearsalError(
            f"TOOLS names a mirror on {host} with a user, a query or a fragment in its URL; "
            f"write the plain URL of the folder, and after it only {PIN}DIGEST"
        )
    if parts.scheme not in ("https", "http", "file") or not (host or parts.scheme == "file"):
        raise RehearsalError(f"TOOLS is {address!r}; a mirror is the https:// URL of a folder, or the folder's path")
    if parts.scheme == "http" and not pinned:
        raise RehearsalError(
            f"TOOLS is {address!r}; over http:// anybody on the way can change what arrives. "
            f"Use https://, or pin the checksums: {address}{PIN}DIGEST, as `make mirror` printed it"
        )
    return address
