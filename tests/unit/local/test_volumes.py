"""Volumes of a rehearsal: for which claims they are created, and where."""

from pathlib import Path
from typing import Any

import pytest

from local.volumes import SELECTED_NODE, STORAGE_CLASS, storage_class, volume

FOLDER = Path("/run/node/volumes")


def claim(storage_class: str = STORAGE_CLASS, node: str | None = "real-0", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "data-ray-redis-0",
            "namespace": "ray-system",
            "uid": "1234",
            "annotations": {SELECTED_NODE: node} if node else {},
        },
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def test_a_volume_is_on_the_node_of_its_pod_and_for_its_claim_alone() -> None:
    made = volume(claim(), FOLDER)
    assert made is not None
    spec = made["spec"]
    assert spec["local"] == {"path": "/run/node/volumes/pvc-1234"}
    [term] = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["real-0"]
    assert spec["claimRef"]["uid"] == "1234"
    assert spec["capacity"] == {"storage": "1Gi"}


@pytest.mark.parametrize("other", [claim(""), claim(node=None), claim(volumeName="pvc-1234")])
def test_no_volume_is_created_without_a_class_before_the_pod_has_a_node_or_twice(other: dict[str, Any]) -> None:
    assert volume(other, FOLDER) is None


@pytest.mark.parametrize(
    "of_all_nodes", [claim("shared", node=None), claim("shared"), claim(accessModes=["ReadWriteMany"])]
)
def test_a_volume_of_another_class_or_for_many_pods_is_on_all_nodes(of_all_nodes: dict[str, Any]) -> None:
    made = volume(of_all_nodes, FOLDER)
    assert made is not None
    [term] = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "kubernetes.io/hostname", "operator": "Exists"}]
    assert made["spec"]["storageClassName"] == of_all_nodes["spec"]["storageClassName"]


def test_only_the_default_class_waits_for_a_pod() -> None:
    modes = {name: storage_class(name)["volumeBindingMode"] for name in (STORAGE_CLASS, "shared")}
    assert modes == {STORAGE_CLASS: "WaitForFirstConsumer", "shared": "Immediate"}
