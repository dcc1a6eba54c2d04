"""A tenant's storage: its objects and their order, in pods of RayClusters, and object storage by its driver."""

from pathlib import Path
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.storage.existing import Live, look, unfit
from components.storage.manifests import is_object_storage, named_as_object_storage, objects, volume_of_home
from components.storage.settings import StorageSettings, Use
from stacks.load import load, parse
from stacks.objects.ray_clusters import rendered
from stacks.objects.stack import render
from stacks.program.build import build
from stacks.settings import StackSettings
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record
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


SOURCES: list[dict[str, Any]] = [
    {"name": "models", "storageClass": "shared", "size": "1Ti"},
    {"name": "cache", "storageClass": "shared", "size": "1Ti", "retain": False},
    {"name": "data", "nfs": {"server": "nfs.example.com", "path": "/data"}, "size": "1Ti"},
    {"name": "old", "claim": "old"},
    {"name": "copied", "claim": "copied", "retain": False},
]
MOUNTS = [{"name": each["name"], "mountPath": f"/mnt/{each['name']}"} for each in SOURCES]
CLUSTER = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "storage": MOUNTS}


@pytest.fixture
def built(kubectl_that_renders: Path) -> Recorder:
    tenant = {"name": "a", "storage": SOURCES, "clusters": [CLUSTER]}
    return record(lambda: build(parse({"operator": {"location": "config/default"}, "tenants": [tenant]})))


def test_pulumi_keeps_a_claim_whose_data_exist_nowhere_else(built: Recorder) -> None:
    kept = {name: (each.protect, each.retained) for name, each in built.registered.items() if "/storage-" in name}
    assert kept == {
        "a/storage-models-claim": (True, True),
        "a/storage-cache-claim": (False, False),
        "a/storage-data-volume": (False, False),
        "a/storage-data-claim": (False, False),
    }
    assert built.registered["a/guard"].inputs["storage"] == ["models", "old"]


HOME = Use(hf_home=True)


def storage(**source: Any) -> StorageSettings:
    return StorageSettings.model_validate({"name": "models", **source}, by_alias=True)


OF_A_CLASS = storage(storageClass="models", size="1Ti")
EXISTING = storage(claim="models")


@pytest.mark.parametrize(
    ("driver", "parameters", "expected"),
    [
        ("s3.csi.aws.com", {}, True),
        ("efs.csi.aws.com", {}, False),
        ("blob.csi.azure.com", {}, True),
        ("blob.csi.azure.com", {"Protocol": "fuse2"}, True),
        ("blob.csi.azure.com", {"protocol": "nfs"}, False),
        ("everest-csi-provisioner", {"csi.storage.k8s.io/csi-driver-name": "obs.csi.everest.io"}, True),
        ("everest-csi-provisioner", {"csi.storage.k8s.io/csi-driver-name": "nas.csi.everest.io"}, False),
    ],
)
def test_a_driver_is_object_storage(driver: str, parameters: dict[str, str], expected: bool) -> None:
    assert is_object_storage(driver, parameters) == expected


def test_a_name_of_a_class_only_suggests_it() -> None:
    assert [each for each in ("csi-s3", "gcsfuse", "azureblob-fuse-premium") if not named_as_object_storage(each)] == []
    assert [each for each in ("nfs", "gp3", "ess3d", "azureblob-nfs-premium") if named_as_object_storage(each)] == []


@pytest.mark.parametrize(
    ("env", "mounts", "found"),
    [
        ([{"name": "HF_HOME", "value": "/mnt/models/hub"}], {"/mnt": "data", "/mnt/models": "models"}, "models"),
        ([{"name": "HF_HOME", "value": "/mnt/models"}], {"/mnt/models-of-others": "others"}, None),
        ([], {"/home/ray/.cache": "cache"}, "cache"),
        ([{"name": "HF_HOME", "valueFrom": {"fieldRef": {}}}], {"/home/ray/.cache": "cache"}, None),
        ([], {}, None),
    ],
)
def test_the_home_is_on_the_nearest_mount_above_it(
    env: list[dict[str, Any]], mounts: dict[str, str], found: str | None
) -> None:
    container = {"env": env, "volumeMounts": [{"name": name, "mountPath": path} for path, name in mounts.items()]}
    pod = {"containers": [container], "volumes": [{"name": name} for name in mounts.values()]}
    assert volume_of_home(pod) == ({"name": found} if found else None)


def test_a_class_of_object_storage_is_refused_for_hf_home_alone() -> None:
    live = Live(storage_class={"provisioner": "ru.yandex.s3.csi", "parameters": {}})
    refusal = unfit(OF_A_CLASS, HOME, live)
    assert refusal is not None
    assert "ru.yandex.s3.csi provides object storage: transformers is known to fail on S3-like filesystems" in refusal
    assert "NFS or GPFS-backed volume" in refusal
    assert unfit(OF_A_CLASS, Use(several=True), live) is None
    assert unfit(OF_A_CLASS, HOME, Live(storage_class={"provisioner": "nfs.csi.k8s.io"})) is None


def test_an_existing_claim_is_refused_by_its_volume_and_its_access_modes() -> None:
    shared = {"spec": {"accessModes": ["ReadWriteMany"], "volumeName": "v"}}
    volume = {"spec": {"csi": {"driver": "s3.csi.aws.com", "volumeAttributes": {"bucketName": "b"}}}}
    assert "s3.csi.aws.com" in str(unfit(EXISTING, HOME, Live(shared, volume)))
    assert unfit(EXISTING, Use(several=True), Live(shared, volume)) is None
    of_one = Live({"spec": {"accessModes": ["ReadWriteOnce"]}})
    assert "claim 'models' is ReadWriteOnce, and several pods mount it" in str(
        unfit(EXISTING, Use(several=True), of_one)
    )
    assert unfit(EXISTING, HOME, of_one) is None
    assert unfit(EXISTING, Use(hf_home=True, several=True), Live()) is None


def test_claim_volume_and_class_are_read_and_what_cannot_be_read_refuses_nothing() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "team-a", "name": "models"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}}
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "models"}}
    csi = {"csi": {"driver": "s3.csi.aws.com"}}
    cluster = FakeCluster({**claim, "spec": {"volumeName": "v"}}, {**volume, "spec": csi})
    assert "s3.csi.aws.com" in str(look(EXISTING, HOME, "team-a", cluster))
    assert look(OF_A_CLASS, HOME, "team-a", cluster) is None
    cluster.add({**made, "provisioner": "s3.csi.aws.com"})
    assert "s3.csi.aws.com" in str(look(OF_A_CLASS, HOME, "team-a", cluster))
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no answer"))
    assert look(EXISTING, HOME, "team-a", cluster) is None
