"""KubeRay's kustomize tree for tests, a kubectl that renders it, and the manifests of Volcano and Kueue."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.crds.definitions import whole
from components.manifest_files import read
from local.tools import KUBERAY, KUBERNETES, KUEUE, VOLCANO
from testbed.fake_cluster import FakeCluster, of_all_sessions
from testbed.recorder import with_event_loop


def pytest_itemcollected(item: pytest.Item) -> None:
    """All tests of this folder are unit tests."""
    item.add_marker(pytest.mark.unit)


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """An empty cluster, with which all sessions of the test are. A module whose tests need the Kubernetes client has a
    fixture of this name that does nothing."""
    return of_all_sessions(monkeypatch)


@pytest.fixture(autouse=True)
def event_loop() -> None:
    """One for outputs of Pulumi."""
    with_event_loop()


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pinned KubeRay's `config/default` as kubectl renders it.

    Of the definitions' schemas only the names of the fields below `spec` are kept: complete, they are a megabyte that
    every test would carry through Pulumi's mocks.
    """
    objects = _kustomized(KUBERAY.share("config") / "default")
    for definition in (body for body in objects if body["kind"] == "CustomResourceDefinition"):
        for version in definition["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["properties"] = {name: {"type": "object"} for name in spec["properties"]}
            spec.pop("x-kubernetes-validations", None)
            version["schema"]["openAPIV3Schema"]["properties"] = {"spec": spec}
    file = tmp_path_factory.mktemp("kuberay") / "rendered.yaml"
    file.write_text(yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
    return file


@pytest.fixture
def tree(rendered: Path) -> list[dict[str, Any]]:
    """The objects of KubeRay's `config/default`."""
    return list(yaml.load_all(rendered.read_text(), Loader=yaml.CSafeLoader))


@pytest.fixture
def kubectl_that_renders(rendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `kubectl` alone on the PATH that renders any location to the tree and writes each call to the returned file."""
    calls = tmp_path / "calls"
    calls.touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    kubectl = programs / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\nwhile IFS= read -r line; do echo "$line"; done < {rendered}\n'
    )
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    return calls


@pytest.fixture(scope="session")
def manifest_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pinned Volcano's manifest. It omits the definitions' schemas, a megabyte that every test would carry."""
    objects = whole(read(str(VOLCANO.share("installer") / "volcano-development.yaml")))
    return _without_schemas(objects, tmp_path_factory.mktemp("volcano") / "volcano.yaml")


@pytest.fixture(scope="session")
def kueue_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pinned Kueue's `config/default` as kubectl renders it, without the definitions' schemas."""
    objects = _kustomized(KUEUE.share("config") / "default")
    return _without_schemas(objects, tmp_path_factory.mktemp("kueue") / "kueue.yaml")


def _kustomized(tree: Path) -> list[dict[str, Any]]:
    kubectl = KUBERNETES.program("kubectl")
    text = subprocess.run([kubectl, "kustomize", tree], check=True, capture_output=True, text=True).stdout
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def _without_schemas(objects: list[dict[str, Any]], file: Path) -> Path:
    for definition in (body for body in objects if body["kind"] == "CustomResourceDefinition"):
        for version in definition["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"] = {"type": "object"}
    file.write_text(yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
    return file
