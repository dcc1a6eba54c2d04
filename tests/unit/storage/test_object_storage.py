"""Object storage is recognized by its driver, in the stack file and in the cluster."""

from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.storage.existing import Live, look, unfit
from components.storage.manifests import is_object_storage, named_as_object_storage, volume_of_home
from components.storage.settings import StorageSettings, Use
from testbed.fake_cluster import FakeCluster

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


def test_claim_volume_and_class_are_read() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "team-a", "name": "models"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}}
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "models"}}
    csi = {"csi": {"driver": "s3.csi.aws.com"}}
    cluster = FakeCluster({**claim, "spec": {"volumeName": "v"}}, {**volume, "spec": csi})
    assert "s3.csi.aws.com" in str(look(EXISTING, HOME, "team-a", cluster))
    assert look(OF_A_CLASS, HOME, "team-a", cluster) is None
    cluster.add({**made, "provisioner": "s3.csi.aws.com"})
    assert "s3.csi.aws.com" in str(look(OF_A_CLASS, HOME, "team-a", cluster))


def test_a_cluster_that_cannot_be_read_refuses_nothing() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no answer"))
    assert look(EXISTING, HOME, "team-a", cluster) is None
