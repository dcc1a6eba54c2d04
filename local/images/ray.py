"""The image of Ray: this machine's distribution, with its Python, and Ray from the Python index.

It has what KubeRay requires: `ray`, `wget` for the probes, a shell, and a user `ray` with number 1000 and group 100 as
in Ray's own images (ray-project/ray, docker/base-deps/Dockerfile). CUDA and the other programs of Ray's images are
missing.
"""

import re
from pathlib import Path

from local.images import python
from local.images.distribution import run_in
from local.images.image import Image
from local.progress import Report

PINS = Path(__file__).with_name("ray.txt")

PACKAGES = ("wget", "procps")

HOME = "/opt/ray"
"""The Python environment in the image."""


def add_user(files: Path) -> None:
    """Adds the user `ray`."""
    run_in(files, "useradd", "--create-home", "--uid=1000", "--gid=100", "--shell=/bin/bash", "ray")


def _fill(files: Path, report: Report) -> None:
    python.fill(files, report, HOME, PACKAGES, PINS)
    add_user(files)
    python.compile_all(files, report, HOME)


def _version() -> str:
    pinned = re.search(r"(?m)^ray==(\S+)", PINS.read_text())
    assert pinned is not None
    return pinned[1]


def _pins() -> str:
    return "".join([PINS.read_text(), Path(__file__).read_text(), python.recipe()])


VERSION = _version()
"""The version of Ray in it."""

RAY = Image(
    "ray",
    f"docker.io/rayproject/ray:{VERSION}",
    {"User": "1000:100", "WorkingDir": "/home/ray", "Env": python.environment(HOME, "HOME=/home/ray")},
    _fill,
    _pins,
)
