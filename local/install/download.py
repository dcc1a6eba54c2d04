"""Downloads files with a known SHA-256 digest from a web server, or from a folder as file://."""

import hashlib
import queue
import threading
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from local.errors import RehearsalError
from local.progress import Report

STALLED = 30
"""Seconds without data after which a download counts as interrupted."""

_CHUNK = 1 << 20


class DownloadError(Exception):
    """A server does not answer, does not have a file, or does not send all of it; the text has the reason."""


class NoAnswerError(DownloadError):
    """The server does not answer at all, so its other files need not be requested."""


class _CutOffError(DownloadError):
    """The server stopped sending."""


def download(url: str, target: Path, report: Report, patience: float) -> str:
    """Writes a file to `target` and returns its SHA-256 digest. An interrupted download is repeated once.

    `patience`: seconds until the server has to answer, including the lookup of its name.

    Raises:
        DownloadError: there is no such file, it was interrupted twice, or (NoAnswerError) the server does not answer.
    """
    try:
        return _receive(url, target, report, patience)
    except _CutOffError:
        return _receive(url, target, report, patience)


def mismatch(url: str, expected: str, got: str, pinned_in: str) -> RehearsalError:
    """The error for a file that is not the pinned one."""
    return RehearsalError(
        f"{url} does not have the checksum that {pinned_in} has for it; nothing of it was installed:\n"
        f"  expected  sha256 {expected}\n"
        f"  got       sha256 {got}\n"
        "Find out why before you trust that server. TOOLS=build builds the programs here (docs/tools.md)."
    )


def _receive(url: str, target: Path, report: Report, patience: float) -> str:
    received, hashed = 0, hashlib.sha256()
    with _open(url, patience) as answer, target.open("wb") as file:
        length = int(answer.headers.get("Content-Length") or 0)
        for chunk in _chunks(answer, url):
            file.write(chunk)
            hashed.update(chunk)
            received += len(chunk)
            report(received / length if length else 0.0, f"{received >> 20} MB of {url.rpartition('/')[2]}")
    if length > received:
        raise _CutOffError(f"{url} was cut off after {received} of {length} bytes")
    return hashed.hexdigest()


def _chunks(answer: Any, url: str) -> Iterator[bytes]:
    try:
        while chunk := answer.read(_CHUNK):
            yield chunk
    except (OSError, HTTPException) as error:
        raise _CutOffError(f"{url} was cut off: {error}") from None


def _open(url: str, patience: float) -> Any:
    """The server's answer, as urllib returns it.

    urllib applies its timeout to each address and each step separately, and not to the lookup of names, which alone can
    take half a minute without a network. So it runs in a thread that is abandoned.
    """
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urlopen(url, timeout=STALLED))  # noqa: S310 -- http, https and file, as `origin` has checked
        except (OSError, HTTPException, ValueError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=patience)
    except queue.Empty:
        raise NoAnswerError(f"no answer within {patience:.0f} seconds") from None
    match answer:
        case HTTPError():
            raise DownloadError(f"{url}: {answer.code} {answer.reason}")
        case URLError(reason=FileNotFoundError()):
            raise DownloadError(f"{url}: there is no such file")
        case URLError():
            raise NoAnswerError(str(answer.reason))
        case Exception():
            raise NoAnswerError(str(answer))
    return answer
