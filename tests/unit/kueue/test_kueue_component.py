"""What a cluster admin relies on when Kueue is provisioned."""

from pathlib import Path

import pulumi
import pytest

from components.kueue.component import Kueue, KueueArgs
from components.kueue.settings import KueueSettings
from tests.unit.recorder import Recorder, record

pytestmark = pytest.mark.unit


def test_crds_come_before_the_manager_and_the_guard_goes_before_anything_else(
    kueue_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletion runs backwards: the guard is asked while everything is still there."""
    recorder = provisioned(kueue_file, tmp_path, monkeypatch)
    crds = recorder.kinds()["kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"]
    assert len(crds) == 11
    for crd in crds:
        assert recorder.made_before(crd, "kueue-deployment-kueue-controller-manager")
    guard = recorder.registered["kueue-crd-guard"]
    rest = set(recorder.registered) - {"kueue", "kueue-crd-guard", "kueue-webhook-certificate"}
    assert guard.dependencies == rest
    assert guard.inputs["context"] == "staging"
    assert "workloads.v1beta1.kueue.x-k8s.io" in guard.inputs["resources"]


def test_a_tree_that_is_none_is_refused_with_the_reason(
    tmp_path: Path, kueue_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kueue_file = tmp_path / "other.yaml"
    kueue_file.write_text("kind: ConfigMap\nmetadata: {name: x}")
    with pytest.raises(pulumi.RunError, match="it has no Deployment"):
        provisioned(kueue_file, tmp_path, monkeypatch)


def provisioned(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """With a kubectl that renders any location to what the file holds."""
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(f'#!/bin/sh\nwhile IFS= read -r line; do echo "$line"; done < {file}\n')
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(kubectl.parent))
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(folder / "cache"))
    settings = KueueSettings(location="config/default")
    return record(lambda: Kueue("kueue", KueueArgs(settings, "staging")))
