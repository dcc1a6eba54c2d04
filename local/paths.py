"""Paths of the checkout, of files that are kept between runs, and of files of one rehearsal."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

RUN = ROOT / ".rehearsal"
"""Files of this checkout's rehearsal: credentials, data, logs, Pulumi's state. `make down CLEAN=1` removes it."""


def first_on_python_path(folder: Path, environment: Mapping[str, str]) -> str:
    """PYTHONPATH with the folder before those that the environment has."""
    return os.pathsep.join(filter(None, [str(folder), environment.get("PYTHONPATH")]))


def cache() -> Path:
    """The folder that checkouts share: built tools. `RAY_PLATFORM_CACHE`, else the user's cache folder.

    The default follows the XDG base directory specification.
    """
    named = os.environ.get("RAY_PLATFORM_CACHE")
    if named:
        return Path(named).expanduser().resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ray-platform"


def socket(run: Path, purpose: str) -> Path:
    """A Unix socket of the rehearsal with that run folder.

    Its path may have 107 characters (unix(7)), so it is not in the checkout, whose path may be longer.
    """
    return cache() / "sockets" / f"{hashlib.sha256(str(run).encode()).hexdigest()[:16]}-{purpose}"
