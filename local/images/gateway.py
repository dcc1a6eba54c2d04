"""The image of the Redis gateway: the distribution's Python, what gateway/requirements.txt names, and gateway/."""

import shutil
from pathlib import Path

from components.redis_gateway.settings import IMAGE as GATEWAY_IMAGE
from core.images import full_name
from local import paths
from local.images import python
from local.images.image import Image
from local.progress import Report

SOURCE = paths.ROOT / "gateway"

PINS = SOURCE / "requirements.txt"

HOME = "/opt/gateway"
"""The Python environment in the image."""

USER = "65532"
"""The user id of `nonroot`, as in images without a distribution (GoogleContainerTools/distroless)."""


def _fill(files: Path, report: Report) -> None:
    packages = python.fill(files, report, HOME, (), PINS)
    shutil.copytree(SOURCE, packages / "gateway", ignore=shutil.ignore_patterns("__pycache__", "requirements.*"))
    python.compile_all(files, report, HOME)


def _pins() -> str:
    sources = [file.read_text() for file in sorted(SOURCE.glob("*.py"))]
    return "".join([*sources, PINS.read_text(), Path(__file__).read_text(), python.recipe()])


GATEWAY = Image(
    "redis-gateway",
    full_name(GATEWAY_IMAGE),
    {
        "User": f"{USER}:{USER}",
        "Entrypoint": [f"{HOME}/bin/python", "-m", "gateway"],
        "Env": python.environment(HOME),
    },
    _fill,
    _pins,
)
