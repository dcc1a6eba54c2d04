"""A tenant's storage as objects, and in the pods of its RayClusters."""

from pathlib import Path
from typing import Any

import pytest

from components.storage.manifests import objects
from components.storage.settings import StorageSettings
from stacks.load import load
from stacks.objects.ray_clusters import rendered
from stacks.objects.stack import render
from stacks.settings import StackSettings
from tests.unit.planning.stacks import cluster, stack, tenant

GOOD = Path(__file__).parents[2] / "stack_files" / "good" / "storage.yaml"
NFS = {"nfs": {"server": "nfs.example.com", "path": "/models"}, "size": "2Ti"}


def made(**source: Any) -> dict[str, Any]:
    return objects(StorageSettings.model_validate({"name": "models", **source}, by_alias=True), "team-a")


def pods(of: StackSettings, name: str = "training") -> list[dict[str, Any]]:
    """The pods of head and worker groups of a RayCluster of the first tenant."""
    first = of.tenants[0]
    settings = next(each for each in first.clusters if each.name == name)
    spec = rendered(of, first, settings)["spec"]
    return [each["template"]["spec"] for each in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def test_a_claim_of_a_class_is_shared_and_marked_as_retained() -> None:
    claim = made(storageClass="shared", size="500Gi")["claim"]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "500Gi"}},
        "storageClassName": "shared",
    }
    assert claim["metadata"]["annotations"] == {"ray-platform/retain": "true"}
    assert "annotations" not in made(storageClass="shared", size="500Gi", retain=False)["claim"]["metadata"]


def test_an_existing_claim_has_no_objects() -> None:
    assert made(claim="models-2025") == {}


@pytest.mark.parametrize(
    "source",
    [
        {"nfs": {"server": "nfs.example.com", "path": "/models"}},
        {"csi": {"driver": "gpfs.example.com", "volumeHandle": "fs1", "volumeAttributes": {"path": "/models"}}},
    ],
)
def test_an_existing_source_is_bound_to_one_claim_and_keeps_its_data(source: dict[str, Any]) -> None:
    found = made(**source, size="2Ti")
    volume, claim = found["volume"]["spec"], found["claim"]["spec"]
    assert source.items() <= volume.items()
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"
    assert (volume["claimRef"]["namespace"], volume["claimRef"]["name"]) == ("team-a", "models")
    assert claim["volumeName"] == found["volume"]["metadata"]["name"]
    assert claim["storageClassName"] == volume["storageClassName"] == ""


def test_names_of_volumes_differ_by_namespace_storage_and_source() -> None:
    storages = [("a", "b-c", NFS), ("a-b", "c", NFS), ("a", "b-c", {**NFS, "size": "3Ti"})]
    settings = [
        (namespace, StorageSettings.model_validate({"name": name, **source})) for namespace, name, source in storages
    ]
    names = [objects(each, namespace)["volume"]["metadata"]["name"] for namespace, each in settings]
    assert len(set(names)) == 3
    assert names[0].startswith("a.b-c.")


def test_head_and_all_workers_mount_storage_and_share_hf_home() -> None:
    found = pods(load(GOOD))
    assert len(found) == 6  # four sizes of the pool, and a group of its own
    for pod in found:
        ray = pod["containers"][0]
        assert {"name": "models", "mountPath": "/mnt/models"} in ray["volumeMounts"]
        assert {"name": "results", "mountPath": "/mnt/results", "subPath": "training"} in ray["volumeMounts"]
        assert {"name": "archive", "mountPath": "/mnt/archive", "readOnly": True} in ray["volumeMounts"]
        assert {"name": "archive", "persistentVolumeClaim": {"claimName": "archive-2025"}} in pod["volumes"]
        assert [each["value"] for each in ray["env"] if each["name"] == "HF_HOME"] == ["/mnt/models"]


def test_two_folders_of_a_storage_are_one_volume() -> None:
    mounts = [{"name": "models", "mountPath": f"/mnt/{each}", "subPath": each} for each in ("a", "b")]
    own = {"volumes": [{"name": "cache", "emptyDir": {}}], "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}
    of = stack(tenant("a", cluster("training", storage=mounts, **own), storage=[{"name": "models", "claim": "m"}]))
    for pod in pods(of)[1:]:
        assert [each["name"] for each in pod["volumes"]] == ["cache", "models"]
        assert [each["mountPath"] for each in pod["containers"][0]["volumeMounts"]] == ["/cache", "/mnt/a", "/mnt/b"]


def test_a_cluster_that_mounts_no_storage_does_not_change() -> None:
    without, with_it = (
        stack(tenant("a", cluster("training", env={"A": "1"}), **more))
        for more in ({}, {"storage": [{"name": "m", **NFS}]})
    )
    assert pods(without) == pods(with_it)


def test_the_platform_alone_creates_claims() -> None:
    kinds = [kind for kind, _ in render(load(GOOD)) if kind.startswith("PersistentVolume")]
    assert sorted(kinds) == ["PersistentVolume"] * 2 + ["PersistentVolumeClaim"] * 4
