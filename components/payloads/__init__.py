"""The programs that the stack ships into pods as text, and how they are read. They follow one convention:

- **Python.** A payload runs with the Python of the image that it is shipped into, which is Ray's, or the runtime of
  Cloudera ML. It runs with Python 3.9: `A | B` stands in annotations alone, which are not evaluated.
- **Packages.** It imports nothing of this project, whose packages the image does not have, but the standard library,
  Ray, and what Ray's images have beside it (`PACKAGES`). Ray's images have no client of Kubernetes.
- **Arguments.** One argument with JSON, or settings in environment variables; the docstring of the payload lists them.
  The stack runs it as `python -c TEXT JSON`, or mounts it as a file if it is a package or is called by Ray.
- **Results.** The last line that it prints, as JSON, or the exit code and the termination message of its pod.
- **Edits.** A changed text replaces the pods that it is part of. Of Redis, Ray's heads lose their server for a moment.

The stack may import names and functions from a payload that imports the standard library alone. `redis/` has shell
scripts for `/bin/sh` of Redis' image; their settings are environment variables.
"""

from functools import cache
from pathlib import Path

PACKAGES = ("ray", "yaml", "cryptography", "starlette", "prometheus_client", "async_timeout")
"""Packages of Ray's images that payloads import."""

_FOLDER = Path(__file__).parent


@cache
def text(name: str) -> str:
    """The text of the payload `NAME.py`."""
    return (_FOLDER / f"{name}.py").read_text()


def files(name: str) -> dict[str, str]:
    """The texts of a payload with several files, by file name."""
    return {file.name: file.read_text() for file in sorted((_FOLDER / name).iterdir()) if file.is_file()}
