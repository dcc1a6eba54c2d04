"""A mirror of images on a real node: a registry, filled as docs/manifests.md has it."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import httpx
import yaml

from local import images
from local.rehearsal import Rehearsal
from local.supervision import Program
from stacks.images.used import Image
from testbed.pods.steps import until_successful

_NAME, _PORT = "registry", 5000

REGISTRY = f"127.0.0.1:{_PORT}"
"""Its address on the node. Runtimes speak plain HTTP with a registry on their own machine alone."""

MIRRORS = {"quay.io": f"{REGISTRY}/quay.io"}
"""The setting `images.mirrors` of a stack that pulls KubeRay's image from it."""


def missing() -> list[str]:
    """The programs that a mirror needs and this machine lacks; they are in Debian's packages of the same names."""
    return [name for name in ("docker-registry", "skopeo") if shutil.which(name) is None]


def serve(rehearsal: Rehearsal) -> None:
    """Starts an empty registry on the node."""
    folder = rehearsal.run / "node" / _NAME
    folder.mkdir()
    settings = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder)}},
        "http": {"addr": f":{_PORT}"},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    rehearsal.supervisor.add([Program(_NAME, ["docker-registry", "serve", config], {})])
    rehearsal.supervisor.launch(_NAME)
    until_successful(lambda: httpx.get(f"http://{_outside(rehearsal)}/v2/", trust_env=False), "the registry answers")


def fill(rehearsal: Rehearsal, used: Iterable[Image]) -> None:
    """Copies images of a stack to the names that its pods pull them by."""
    for each in used:
        (image,) = images.named([each.name])
        target = each.pulled.replace(REGISTRY, _outside(rehearsal))
        with image.held() as archive:
            _copy(archive, target)


def _copy(archive: Path, target: str) -> None:
    command = ["skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false"]
    done = subprocess.run(
        [*command, f"docker-archive:{archive}", f"docker://{target}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _outside(rehearsal: Rehearsal) -> str:
    """The registry's address for programs that are not on the node."""
    return f"{rehearsal.placement.address}:{_PORT}"
