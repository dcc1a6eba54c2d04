"""Where things lie: the checkout, what is kept between runs, and what one rehearsal makes."""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

RUN = ROOT / ".rehearsal"
"""What this checkout's rehearsal makes: credentials, data, logs, Pulumi's state. `make down CLEAN=1` removes it."""


def cache() -> Path:
    """The folder that outlives checkouts: built tools. `RAY_PLATFORM_CACHE`, else the user's cache folder.

    The default follows the XDG base directory specification.
    """
    named = os.environ.get("RAY_PLATFORM_CACHE")
    if named:
        return Path(named).expanduser().resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ray-platform"


def socket(run: Path, purpose: str) -> Path:
    """A Unix socket of the rehearsal with that run folder.

    Its path may have 107 characters (unix(7)); a checkout may lie deeper than that.
    """
    return cache() / "sockets" / f"{hashlib.sha256(str(run).encode()).hexdigest()[:16]}-{purpose}"
