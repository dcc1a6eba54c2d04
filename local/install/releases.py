"""Programs that the tools' own projects publish, with the checksums pinned in local/tools/releases.sha256.

A file without a pin is never downloaded: after an upgrade a tool is built until `python -m local pin-releases` has
pinned its new files.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from local import paths
from local.errors import RehearsalError
from local.install import checksums
from local.install.archive import ArchiveError, extract
from local.install.download import DownloadError, NoAnswerError, download, mismatch
from local.progress import Report, console, step
from local.tools import ALL, ARCHITECTURE, PLATFORM, Tool

ARCHITECTURES = ("amd64", "arm64")
"""The platforms whose files are pinned."""

PATIENCE = 3
"""Seconds in which a server has to answer; without a network the build should begin soon."""


def pins_file() -> Path:
    """The file of the pins by address, in the format of sha256sum(1)."""
    return paths.ROOT / "local" / "tools" / "releases.sha256"


def pins() -> dict[str, str]:
    """The pinned digests by address.

    Raises:
        RehearsalError: the file of pins cannot be read.
    """
    file = pins_file()
    try:
        return checksums.read(file.read_text())
    except (OSError, ValueError) as error:
        raise RehearsalError(f"{file}: {error}") from None


class Releases:
    """The servers of these projects; a server that did not answer is not asked again."""

    def __init__(self) -> None:
        self._pins = pins() if PLATFORM.startswith("linux-") else {}
        self._silent: set[str | None] = set()

    def install(self, tool: Tool, programs: Iterable[str], target: Path, position: str) -> list[str]:
        """Downloads those of these programs that are published and pinned into `target`; returns their names.

        If a server does not answer or lacks a file, it prints a line, and does not return the names of its programs.

        Raises:
            RehearsalError: a file is not the pinned one.
        """
        files = {
            url: required
            for url, members in tool.release_files(ARCHITECTURE).items()
            if url in self._pins and urlsplit(url).hostname not in self._silent
            if (required := {program: member for program, member in members.items() if program in programs})
        }
        installed: list[str] = []
        if not files:
            return installed
        try:
            with step(f"Downloading {tool.name} {tool.version} {position}") as report:
                for number, (url, members) in enumerate(files.items()):
                    self._install(url, members, target, _share_of(report, number, len(files)))
                    installed += members
        except NoAnswerError as error:
            host = urlsplit(url).hostname
            self._silent.add(host)
            console.print(f"{host} does not answer ({error}): what it has is built here instead", soft_wrap=True)
        except (DownloadError, ArchiveError) as error:
            console.print(f"{error}: {tool.name} is built here instead", soft_wrap=True)
        return installed

    def _install(self, url: str, members: Mapping[str, str | None], target: Path, report: Report) -> None:
        file = target / ".download"
        try:
            got = download(url, file, report, PATIENCE)
            if got != self._pins[url]:
                raise mismatch(url, self._pins[url], got, "local/tools/releases.sha256")
            for program, member in members.items():
                if member is None:
                    shutil.copyfile(file, target / program)
                else:
                    extract(file, member, target / program)
                (target / program).chmod(0o755)
        finally:
            file.unlink(missing_ok=True)


def pin_releases(tools: Iterable[Tool] = ALL) -> dict[str, str]:
    """Downloads all published files of the tools that have no pin yet, and writes their pins; returns the new ones.

    Existing pins stay; a pin of a file that no tool uses any more is removed.

    Raises:
        RehearsalError: a file cannot be downloaded; the pins before that are written.
    """
    required = {url for tool in tools for arch in ARCHITECTURES for url in tool.release_files(arch)}
    kept = {url: digest for url, digest in pins().items() if url in required}
    new: dict[str, str] = {}
    try:
        for number, url in enumerate(missing := sorted(required - kept.keys()), start=1):
            with step(f"Downloading {url} ({number}/{len(missing)})") as report:
                new[url] = download(url, Path(os.devnull), report, patience=30)
    except DownloadError as error:
        raise RehearsalError(f"{url} cannot be pinned: {error}") from None
    finally:
        pins_file().write_text(checksums.write({**kept, **new}))
    return new


def _share_of(report: Report, number: int, total: int) -> Report:
    """The total progress, from the progress of one of its files."""
    return lambda done, detail: report((number + done) / total, detail)
