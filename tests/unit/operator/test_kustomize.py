"""What a cluster admin relies on when a kustomize tree is rendered."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from components.manifest_files import KustomizeError, ManifestError, render

URL = "https://kuberay.example/default?ref=v1.6.2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A kustomization like KubeRay's: its base is another one beside it, which has a manifest."""
    files = {
        "default/kustomization.yaml": "namespace: ray\nresources: [../manager]\n",
        "manager/kustomization.yaml": "resources: [manager.yaml]\n",
        "manager/manager.yaml": "kind: Deployment\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "default"


def times_rendered(calls: Path) -> int:
    return len(calls.read_text().splitlines())


def test_a_release_is_fetched_once(kubectl_that_renders: Path) -> None:
    first = render(URL, pinned=True)
    assert render(URL, pinned=True) == first
    assert kubectl_that_renders.read_text() == f"kustomize {URL}\n"


def test_a_location_that_may_change_is_rendered_each_time(kubectl_that_renders: Path) -> None:
    render(URL)
    render(URL)
    assert times_rendered(kubectl_that_renders) == 2


def test_a_folder_is_rendered_once(kubectl_that_renders: Path, folder: Path) -> None:
    assert render(str(folder)) == render(str(folder))
    assert times_rendered(kubectl_that_renders) == 1


@pytest.mark.parametrize(
    "changed", ["default/kustomization.yaml", "manager/kustomization.yaml", "manager/manager.yaml", "bin/kubectl"]
)
def test_a_folder_is_rendered_again_once_a_file_or_the_renderer_has_changed(
    kubectl_that_renders: Path, folder: Path, tmp_path: Path, changed: str
) -> None:
    render(str(folder))
    file = tmp_path / changed
    file.write_text(file.read_text() + "# another line\n")
    render(str(folder))
    assert times_rendered(kubectl_that_renders) == 2
    render(str(folder))
    assert times_rendered(kubectl_that_renders) == 2


@pytest.mark.parametrize(
    "kustomization",
    [
        "resources: [../manager, 'https://example.com/more.yaml']",
        "resources: [../manager, 'github.com/ray-project/kuberay//ray-operator/config/crd']",
        "configMapGenerator: [{name: settings, envs: [settings.env]}]",
        "resources: [",
        "[]",
    ],
)
def test_a_folder_that_may_refer_to_other_files_is_rendered_each_time(
    kubectl_that_renders: Path, folder: Path, kustomization: str
) -> None:
    (folder / "kustomization.yaml").write_text(kustomization)
    render(str(folder))
    render(str(folder))
    assert times_rendered(kubectl_that_renders) == 2


@pytest.mark.parametrize("spoil", [lambda file: file.write_text("{"), Path.unlink])
def test_a_broken_cache_file_is_rendered_again(
    kubectl_that_renders: Path, folder: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    first = render(str(folder))
    (kept,) = (tmp_path / "cache" / "manifests").iterdir()
    spoil(kept)
    assert render(str(folder)) == first


def test_without_a_cache_folder_a_tree_is_still_rendered(
    kubectl_that_renders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_PLATFORM_CACHE", os.devnull)
    assert render(URL, pinned=True)


def test_without_kubectl_or_kustomize_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KustomizeError, match=r"neither kubectl nor kustomize is on the PATH.*install kubectl"):
        render("config/default")


def test_a_failure_shows_the_output_of_kubectl_and_names_the_setting(
    kubectl_that_renders: Path, tmp_path: Path
) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.write_text("#!/bin/sh\necho 'error: must build at directory: not a valid directory' >&2\nexit 1\n")
    with pytest.raises(KustomizeError, match=r"config/none failed: error: must build at directory.*set location"):
        render("config/none")


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [", "is not YAML"), ("since: 2026-11-21", "is not YAML of Kubernetes"), ("", "renders to is nothing")],
)
def test_an_invalid_tree_is_refused(kubectl_that_renders: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bin" / "kubectl").write_text(f"#!/bin/sh\necho '{text}'\n")
    with pytest.raises(ManifestError, match=message):
        render("config/default")
