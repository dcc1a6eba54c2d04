"""What a cluster admin relies on when a kustomize tree is rendered."""

from pathlib import Path

import pytest

from components.operator.kustomize import KustomizeError, render

pytestmark = pytest.mark.unit


def test_a_release_is_fetched_once(kubectl_that_renders: Path) -> None:
    first = render("https://kuberay.example/default?ref=v1.6.2", pinned=True)
    assert render("https://kuberay.example/default?ref=v1.6.2", pinned=True) == first
    assert kubectl_that_renders.read_text() == "kustomize https://kuberay.example/default?ref=v1.6.2\n"


def test_a_folder_is_rendered_each_time_for_it_may_change(kubectl_that_renders: Path) -> None:
    render("config/default")
    render("config/default")
    assert kubectl_that_renders.read_text() == "kustomize config/default\n" * 2


def test_without_kubectl_or_kustomize_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KustomizeError, match=r"neither kubectl nor kustomize is on the PATH.*install kubectl"):
        render("config/default")


def test_a_failure_shows_what_kubectl_said_and_names_the_setting(kubectl_that_renders: Path, tmp_path: Path) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.write_text("#!/bin/sh\necho 'error: must build at directory: not a valid directory' >&2\nexit 1\n")
    with pytest.raises(KustomizeError, match=r"config/none failed: error: must build at directory.*operator.location"):
        render("config/none")


@pytest.mark.parametrize(("text", "message"), [("a: [", "is not YAML"), ("", "renders to nothing")])
def test_what_is_no_tree_is_refused(kubectl_that_renders: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bin" / "kubectl").write_text(f"#!/bin/sh\necho '{text}'\n")
    with pytest.raises(KustomizeError, match=message):
        render("config/default")
