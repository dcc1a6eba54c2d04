"""A mirror of images on a real node: a registry, filled by the lines of docs/manifests.md."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import httpx

from local import images
from local.rehearsal import Rehearsal
from local.supervision import Program
from stacks.commands.images.used import Image
from testbed import mirroring
from testbed.mirroring import missing as missing  # what a stack is asked before it names a mirror
from testbed.pods.node import in_its_network
from testbed.pods.steps import until_successful

_PORTS = {"upstream": 5001, "mirror": 5000}

REGISTRY = f"127.0.0.1:{_PORTS['mirror']}"
"""Its address on the node. Runtimes speak plain HTTP with a registry on their own machine alone."""

MIRRORS = {"quay.io": f"{REGISTRY}/quay.io"}
"""The setting `images.mirrors` of a stack that pulls KubeRay's image from it."""


def serve(rehearsal: Rehearsal) -> None:
    """Starts two empty registries on the node: the mirror, and one for the images of the internet's registries."""
    for name, port in _PORTS.items():
        command = mirroring.serving(_folder(rehearsal, name), f":{port}")
        rehearsal.supervisor.add([Program(name, command, {})])
        rehearsal.supervisor.launch(name)
        url = f"http://{_outside(rehearsal, name)}/v2/"
        until_successful(partial(httpx.get, url, trust_env=False), f"the registry {name} answers")


def fill(rehearsal: Rehearsal, file: Path, used: Iterable[Image]) -> None:
    """Copies images of a stack to the names that its pods pull them by, as its administrator does."""
    for each in used:
        (image,) = images.named([each.name])
        with image.held() as archive:
            mirroring.copy(f"docker-archive:{archive}", f"docker://{_outside(rehearsal, 'upstream')}/{each.name}")
    home = rehearsal.run / "node" / "skopeo"
    upstream = f"127.0.0.1:{_PORTS['upstream']}"
    done = mirroring.fill(file, home, upstream, MIRRORS, REGISTRY, in_its_network(rehearsal))
    assert done.returncode == 0, done.stdout + done.stderr


def _folder(rehearsal: Rehearsal, name: str) -> Path:
    return rehearsal.run / "node" / name


def _outside(rehearsal: Rehearsal, name: str) -> str:
    """A registry's address for programs that are not on the node."""
    return f"{rehearsal.placement.address}:{_PORTS[name]}"
