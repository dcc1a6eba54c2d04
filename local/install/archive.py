"""Archives of programs: those of a mirror, which this project writes, and those of other projects."""

import gzip
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import IO

from local.progress import Report

_BROKEN = (tarfile.TarError, zlib.error, EOFError, OSError, KeyError)


class ArchiveError(Exception):
    """An archive cannot be read, or lacks a required file; the text has the reason."""


def pack(folder: Path, target: Path, report: Report) -> None:
    """Writes a folder's content as a `.tar.gz`; the same content always gives the same bytes."""
    scratch = target.with_name(f"{target.name}.partial")
    entries = sorted(folder.rglob("*"))
    try:
        with (
            scratch.open("wb") as file,
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w|") as tar,
        ):
            for number, entry in enumerate(entries):
                name = str(entry.relative_to(folder))
                report(number / len(entries), name)
                tar.add(entry, name, recursive=False, filter=_without_owner_and_time)
        scratch.rename(target)
    finally:
        scratch.unlink(missing_ok=True)


def unpack(archive: Path, target: Path) -> None:
    """Unpacks an archive of `pack`.

    Raises:
        ArchiveError: it cannot be unpacked, or would write outside of `target`.
    """
    try:
        with tarfile.open(archive) as tar:
            # Python has this filter since 3.11.4; the documentation of tarfile proposes this line for older versions.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            tar.extractall(target)  # noqa: S202 -- the filter is set
    except _BROKEN as error:
        raise ArchiveError(f"it cannot be unpacked: {error}") from None


def extract(archive: Path, member: str, target: Path) -> None:
    """Extract one file.

    Raises:
        ArchiveError: the archive cannot be read or has no such file.
    """
    try:
        with tarfile.open(archive) as tar, _content(tar, member) as content, target.open("wb") as file:
            shutil.copyfileobj(content, file)
    except _BROKEN as error:
        raise ArchiveError(f"{member} cannot be extracted: {error}") from None


def _content(tar: tarfile.TarFile, member: str) -> IO[bytes]:
    content = tar.extractfile(member)
    if content is None:
        raise KeyError("it is not a file")
    return content


def _without_owner_and_time(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry
