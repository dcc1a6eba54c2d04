"""A Python that has all of Ray's image, with dashboard, jobs and Serve, unlike that of the tests."""

import fcntl
import hashlib
import shutil
import sys
from pathlib import Path

from uv import find_uv_bin

from local import paths
from local.commands import run
from local.images.ray import PINS


def serve_python() -> Path:
    """Installs it into the cache, if it is not there. Raises RehearsalError."""
    recipe = PINS.read_bytes() + sys.version.encode()
    folder = paths.cache() / "runtimes" / hashlib.sha256(recipe).hexdigest()[:12]
    python, complete = folder / "bin" / "python", folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            run(find_uv_bin(), "venv", "--quiet", f"--python={sys.executable}", folder)
            run(
                find_uv_bin(),
                "pip",
                "install",
                "--quiet",
                f"--python={python}",
                "--compile-bytecode",
                "--require-hashes",
                f"--requirements={PINS}",
            )
            complete.touch()
    return python
