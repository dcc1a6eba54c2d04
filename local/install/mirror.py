"""A mirror: a folder, or its URL, with an archive of each tool and their checksums in SHA256SUMS.

An archive contains the tool's folder of the cache and has its name, so it belongs to one version and all pins of that
tool; the name also has the platform: etcd-v3.6.4-6421519d133a-linux-amd64.tar.gz.
"""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from local.errors import RehearsalError
from local.install import checksums
from local.install.archive import ArchiveError, pack, unpack
from local.install.download import DownloadError, download, mismatch
from local.progress import Report, console, step
from local.tools import PLATFORM, Tool

SUMS = "SHA256SUMS"

PIN = "#sha256="
"""Separates the address of a mirror from the digest of its SHA256SUMS, as in pip's requirements."""

PATIENCE = 15
"""Seconds in which a mirror has to answer."""


class Mirror:
    """The source of all tools; a missing tool is not built."""

    def __init__(self, url: str, pin: str | None) -> None:
        """`url` of the folder, https, http or file; `pin` is the SHA-256 digest of its SHA256SUMS."""
        self._url = url.rstrip("/")
        self._pin = pin
        self._sums: dict[str, str] = {}

    def check(self, tools: Sequence[Tool]) -> None:
        """Reads the mirror's checksums.

        Raises:
            RehearsalError: the mirror does not answer, its checksums are not the pinned ones, or it lacks a tool.
        """
        self._sums = self._read_sums()
        if lacking := [archive_name(tool) for tool in tools if archive_name(tool) not in self._sums]:
            raise RehearsalError(
                f"the mirror {self._url} lacks\n  "
                + "\n  ".join(lacking)
                + "\nWrite them there from this checkout with `make mirror DIR=...` on a machine of this kind, "
                "or build them here with TOOLS=build (docs/tools.md)."
            )

    def install(self, tool: Tool, target: Path, position: str) -> None:
        """Downloads the tool's archive and unpacks it into `target`.

        Raises:
            RehearsalError: it cannot be downloaded, differs from SHA256SUMS, or does not contain the tool.
        """
        name, archive = archive_name(tool), target / ".download"
        url = self._address(name)
        with step(f"Downloading {tool.name} {tool.version} {position}") as report:
            got = self._download(name, archive, report)
            if got != self._sums[name]:
                raise mismatch(url, self._sums[name], got, f"the mirror's {SUMS}")
            try:
                unpack(archive, target)
            except ArchiveError as error:
                raise RehearsalError(f"{url}: {error}; write it again with `make mirror`") from None
            archive.unlink()
        required = [Path("bin") / program for program in tool.programs] + [Path("share") / name for name in tool.files]
        if lacking := [str(path) for path in required if not (target / path).exists()]:
            raise RehearsalError(f"{url} lacks {', '.join(lacking)}: write the archive again with `make mirror`")

    def _read_sums(self) -> dict[str, str]:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / SUMS
            got = self._download(SUMS, file, lambda _done, _detail: None)
            if self._pin is None:
                console.print(
                    f"Checksums of the mirror are not pinned; TOOLS={self._url}{PIN}{got} does that.", soft_wrap=True
                )
            elif got != self._pin:
                raise mismatch(self._address(SUMS), self._pin, got, "TOOLS")
            try:
                return checksums.read(file.read_text())
            except ValueError as error:
                raise RehearsalError(f"{self._address(SUMS)}: {error}") from None

    def _download(self, name: str, target: Path, report: Report) -> str:
        try:
            return download(self._address(name), target, report, PATIENCE)
        except DownloadError as error:
            raise RehearsalError(
                f"the mirror {self._url} did not send {name}: {error}. "
                "Try again, or build the programs here with TOOLS=build (docs/tools.md)."
            ) from None

    def _address(self, name: str) -> str:
        return f"{self._url}/{quote(name)}"


def archive_name(tool: Tool) -> str:
    return f"{tool.folder.name}-{PLATFORM}.tar.gz"


def write_mirror(folder: Path, tools: Iterable[Tool]) -> str:
    """Writes an archive of each of these tools, which must be in the cache, into a folder, and the checksums of all
    archives there; returns the digest of SHA256SUMS, for pinning.

    The same tool gives the same bytes again. Archives of other versions and systems stay, so that one folder serves
    several checkouts and machines.

    Raises:
        RehearsalError: the folder is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for tool in tools:
            with step(f"Writing {archive_name(tool)}") as report:
                pack(tool.folder, folder / archive_name(tool), report)
        sums = {file.name: checksums.digest(file) for file in folder.glob("*.tar.gz")}
        (folder / SUMS).write_text(checksums.write(sums))
        return checksums.digest(folder / SUMS)
    except OSError as error:
        raise RehearsalError(f"the mirror in {folder} cannot be written: {error}") from None
