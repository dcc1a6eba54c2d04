"""The certificates in `caFile`."""

import json
import re
from pathlib import Path

_CERTIFICATE = re.compile(
    r"-----BEGIN (?:X509 )?CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END (?:X509 )?CERTIFICATE-----", re.ASCII
)

_LONGEST = 120 * 1024
"""Bytes as JSON. Linux passes at most 128 KiB to a program in one variable (MAX_ARG_STRLEN); it has more settings."""


def certificates(ca_file: str) -> str:
    """The certificates in a file (PEM), without the names that tools write above them. Raises OSError, ValueError."""
    text = Path(ca_file).read_text(encoding="utf-8", errors="replace")
    if found := _CERTIFICATE.findall(text):
        return "".join(f"{each}\n" for each in found)
    raise ValueError("it has no certificate")


def certificates_for_workers(ca_file: str) -> str:
    """As `certificates`, for a variable of an application. Raises OSError; ValueError also if they are too long."""
    found = certificates(ca_file)
    if len(json.dumps(found)) > _LONGEST:
        raise ValueError(
            f"caFile {ca_file!r} has {len(found) // 1024} KiB of certificates, and an application gets at most "
            f"{_LONGEST // 1024} KiB: keep those that the workspace's certificate needs"
        )
    return found
