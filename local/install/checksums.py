"""SHA-256 digests of files, in the text form that sha256sum(1) writes and checks: `DIGEST  NAME`, a line for each."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

DIGEST = re.compile(r"[0-9a-f]{64}")


def read(text: str) -> dict[str, str]:
    """Digests by name.

    Raises:
        ValueError: a line is of another form; with the line.
    """
    found = {}
    for line in text.splitlines():
        digest, _, name = line.partition("  ")
        if not DIGEST.fullmatch(digest) or not name:
            raise ValueError(f"{line[:80]!r} is not of the form `SHA256  NAME`")
        found[name] = digest
    return found


def write(digests: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
