"""The lines of docs/manifests.md fill a mirror with what a stack pulls, with real registries and two architectures."""

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from local.control_plane import free_ports
from testbed import mirroring
from testbed.machine import lacks
from testbed.pods.steps import until_successful

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(60)]

RAY = "docker.io/rayproject/ray:2.60.0"

ON_QUAY = ("quay.io/kuberay/operator:v1.6.2", "quay.io/ours/ray:2.60.0")

INDEX = "application/vnd.oci.image.index.v1+json"


Registries = Mapping[str, str]


@pytest.fixture
def registries(tmp_path: Path) -> Iterator[Registries]:
    """The addresses of two empty registries on this machine: `upstream`, and the `mirror`."""
    if programs := mirroring.missing():
        lacks(f"not on the PATH: {', '.join(programs)}; they are in Debian's packages of the same names")
    made = {name: f"127.0.0.1:{port}" for name, port in zip(("upstream", "mirror"), free_ports(), strict=False)}
    with ExitStack() as stack:
        for name, address in made.items():
            log = stack.enter_context((tmp_path / f"{name}.log").open("w"))
            command = mirroring.serving(tmp_path / name, address)
            stack.callback(stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log)).terminate)
            until_successful(partial(ask, address, ""), f"the registry {name} answers")
        yield made


def ask(address: str, path: str, **headers: str) -> httpx.Response:
    """A registry's answer."""
    return httpx.get(f"http://{address}/v2/{path}", headers=headers, trust_env=False)


def held(address: str) -> dict[str, list[str]]:
    """The tags of each repository of a registry; none where it has only images by their digests."""
    repositories = ask(address, "_catalog").json()["repositories"]
    return {name: ask(address, f"{name}/tags/list").json().get("tags") or [] for name in repositories}


def digest(address: str, repository: str, reference: str) -> str:
    """The digest of an image with all its architectures, by a tag or a digest."""
    answer = ask(address, f"{repository}/manifests/{reference}", Accept=INDEX)
    return str(answer.headers["Docker-Content-Digest"])


class Layout:
    """A folder with an image for two architectures, in the layout of the OCI."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        images = [self._image(architecture) for architecture in ("amd64", "arm64")]
        index = self._add({"schemaVersion": 2, "mediaType": INDEX, "manifests": images}, INDEX)
        (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [index]}))
        self.digest = str(index["digest"])

    def _image(self, architecture: str) -> dict[str, Any]:
        of = "application/vnd.oci.image"
        config = {"architecture": architecture, "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}
        made = {"schemaVersion": 2, "config": self._add(config, f"{of}.config.v1+json"), "layers": []}
        platform = {"architecture": architecture, "os": "linux"}
        return {**self._add(made, f"{of}.manifest.v1+json"), "platform": platform}

    def _add(self, content: object, kind: str) -> dict[str, Any]:
        text = json.dumps(content).encode()
        digest = hashlib.sha256(text).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(text)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(text)}


def stack_file(folder: Path, mirror: str, pinned: str) -> Path:
    """A stack whose images have a mirror, except one."""
    images = [f"rayproject/ray:2.60.0@{pinned}", "quay.io/ours/ray:2.60.0", "ours/ray:2.60.0"]
    clusters = [{"name": f"c{number}", "rayVersion": "2.60.0", "image": image} for number, image in enumerate(images)]
    config = {
        "ray-platform:images": {"mirrors": {"docker.io/rayproject": f"{mirror}/hub", "quay.io": f"{mirror}/quay"}},
        "ray-platform:tenants": [{"name": "team-a", "clusters": clusters}],
    }
    file = folder / "Pulumi.mirrored.yaml"
    file.write_text(yaml.safe_dump({"config": config}))
    return file


@pytest.fixture
def image(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "image")


def test_what_has_a_mirror_is_copied_with_its_digest(registries: Registries, image: Layout, tmp_path: Path) -> None:
    upstream, mirror = registries["upstream"], registries["mirror"]
    for name in (RAY, *ON_QUAY):
        mirroring.copy(f"oci:{image.folder}", f"docker://{upstream}/{name}")
    file = stack_file(tmp_path, mirror, pinned=image.digest)
    done = mirroring.fill(file, tmp_path, upstream, ("docker.io", "quay.io"), mirror)
    assert done.returncode == 0, done.stderr
    assert held(mirror) == {"hub/ray": [], "quay/kuberay/operator": ["v1.6.2"], "quay/ours/ray": ["2.60.0"]}
    assert digest(mirror, "hub/ray", image.digest) == image.digest
    assert digest(mirror, "quay/ours/ray", "2.60.0") == image.digest


def test_the_first_image_that_cannot_be_copied_is_the_last(
    registries: Registries, image: Layout, tmp_path: Path
) -> None:
    upstream, mirror = registries["upstream"], registries["mirror"]
    for name in ON_QUAY:
        mirroring.copy(f"oci:{image.folder}", f"docker://{upstream}/{name}")
    file = stack_file(tmp_path, mirror, pinned=image.digest)
    done = mirroring.fill(file, tmp_path, upstream, ("docker.io", "quay.io"), mirror)
    assert (done.returncode, held(mirror)) == (1, {})
    assert "rayproject/ray" in done.stderr
