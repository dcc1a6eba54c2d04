"""What a cluster admin relies on when Volcano is provisioned, or exists already."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.cluster import Connection
from components.install import installation_of
from components.volcano.component import VOLCANO, Volcano, VolcanoArgs
from components.volcano.settings import VolcanoSettings
from core.versions import UnsupportedVersionError
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record


def provisioned(location: Path | str, **keys: Any) -> Recorder:
    settings = VolcanoSettings.model_validate({"location": str(location), **keys})
    return record(lambda: Volcano("volcano", VolcanoArgs(settings, FakeCluster(connection=Connection("staging")))))


@pytest.fixture
def recorder(manifest_file: Path) -> Recorder:
    return provisioned(manifest_file)


def test_crds_are_upgraded_before_the_programs(recorder: Recorder) -> None:
    assert len(recorder.registered["volcano-crds"].inputs["definitions"]) == 11
    assert recorder.made_before("volcano-crds", "volcano-deployment-volcano-scheduler")


def test_the_guard_is_deleted_first(recorder: Recorder) -> None:
    """The deletion order is reversed: the guard is deleted before everything else."""
    guard = recorder.registered["volcano-crd-guard"]
    for other in set(recorder.registered) - {"volcano", "volcano-crd-guard"}:
        assert recorder.made_before(other, "volcano-crd-guard")
    assert guard.inputs["connection"] == {"context": "staging"}
    assert "podgroups.v1beta1.scheduling.volcano.sh" in guard.inputs["resources"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("a: [", "is not YAML of Kubernetes"),
        ("kind: ConfigMap\nmetadata: {name: x}", "it has no Deployment"),
    ],
)
def test_an_invalid_manifest_is_refused_with_the_reason(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "volcano.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(pulumi.RunError, match=message):
        provisioned(file)


def crd(*served: str) -> dict[str, Any]:
    return {"spec": {"versions": [{"name": name, "served": True} for name in served]}}


def deployment(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "volcano-scheduler", "image": image}]}}}}


@pytest.mark.parametrize(
    "image", ["docker.io/volcanosh/vc-scheduler:v1.14.1", "registry.example:5000/vc-scheduler:1.14.1"]
)
def test_a_supported_installation_is_accepted(image: str) -> None:
    assert VOLCANO.check(installation_of(crd("v1beta1"), deployment(image)), "volcano-system") == "1.14.1"


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (
            installation_of(crd("v1beta1"), deployment("vc-scheduler:latest")),
            "no Deployment volcano-scheduler with a version",
        ),
        (installation_of(crd("v1beta1"), deployment("vc-scheduler:v1.9.0")), r"Volcano 1\.9\.0 is not supported"),
        (
            installation_of(crd("v1"), deployment("vc-scheduler:v1.14.1")),
            "CRD queues.scheduling.volcano.sh serving v1. Here",
        ),
    ],
)
def test_an_unsupported_installation_is_refused_with_its_version(there: Any, message: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=message):
        VOLCANO.check(there, "volcano-system")
