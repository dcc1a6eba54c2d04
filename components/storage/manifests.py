"""Renders a tenant's storage into Kubernetes objects, and its mounts into those of pods. Which volumes are object
storage behind a filesystem, and which of them is the home of Hugging Face. Pure functions.

Such a filesystem is fine for reading data and writing whole files. It is refused for HF_HOME: "avoid S3-like
filesystems as that is known to cause failures in transformers. Use a NFS or GPFS-backed PersistentVolumeClaim instead"
(IBM ado's guide on deploying RayClusters). Their own documentation has what they lack, such as locks and renames.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.storage.settings import StorageMountSettings, StorageSettings
from core.body import Body

_DRIVERS = frozenset(
    {
        "s3.csi.aws.com",  # docs.aws.amazon.com/eks/latest/userguide/s3-csi.html
        "s3.csi.scality.com",  # scality.github.io/mountpoint-s3-csi-driver
        "ru.yandex.s3.csi",  # github.com/yandex-cloud/k8s-csi-s3
        "ch.ctrox.csi.s3-driver",  # github.com/ctrox/csi-s3
        "gcsfuse.csi.storage.gke.io",  # cloud.google.com/kubernetes-engine/docs, Cloud Storage FUSE CSI driver
        "ossplugin.csi.alibabacloud.com",  # alibabacloud.com/help/en/ack, ossfs 1.0
        "obs.csi.everest.io",  # support.huaweicloud.com, CCE, Object Storage (OBS)
        "com.tencent.cloud.csi.cosfs",  # github.com/TencentCloud/kubernetes-csi-tencentcloud, COSFS
        "cos.s3.csi.ibm.io",  # github.com/IBM/ibm-object-csi-driver
    }
)
"""Names of CSI drivers, and their documentation."""

_BLOB = "blob.csi.azure.com"
"""Object storage by FUSE unless its `protocol` is `nfs` (kubernetes-sigs/blob-csi-driver: docs/driver-parameters.md),
with parameters whose names are case-insensitive."""

_IN_NAMES = re.compile(r"(?:^|[-.])(s3(fs)?|gcs(fuse)?|oss|obs|cosfs?|fuse|buckets?|minio|rclone|geesefs)(?:$|[-.])")

HF_HOME = "HF_HOME"

_DEFAULT_HOME = "/home/ray/.cache/huggingface"
"""Without HF_HOME (huggingface_hub, constants.py), for the user of Ray's images."""

WHY = (
    "transformers is known to fail on S3-like filesystems. Use an NFS or GPFS-backed volume for HF_HOME, and mount "
    "this one elsewhere for data and results"
)


def is_object_storage(driver: str, parameters: Mapping[str, Any]) -> bool:
    """Whether volumes of a CSI driver or of a StorageClass are object storage. `parameters`: attributes of the volume
    or parameters of the class, one of which may name the driver behind a common provisioner."""
    if driver == _BLOB:
        return {key.lower(): value for key, value in parameters.items()}.get("protocol") != "nfs"
    return driver in _DRIVERS or not _DRIVERS.isdisjoint(each for each in parameters.values() if isinstance(each, str))


def named_as_object_storage(storage_class: str) -> bool:
    """Whether the name of a StorageClass suggests it, which is only a guess."""
    return _IN_NAMES.search(storage_class) is not None


def volume_of_home(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The volume with the home of Hugging Face in a pod's first container; None if it is in none, or only the pod knows
    its path."""
    container = pod["containers"][0]
    variables = [each for each in container.get("env") or () if each.get("name") == HF_HOME]
    home = f"{variables[-1].get('value') if variables else _DEFAULT_HOME}/"
    around = [each for each in container.get("volumeMounts") or () if home.startswith(f"{each.get('mountPath', '')}/")]
    if not around:
        return None
    nearest = max(around, key=lambda each: len(each["mountPath"]))
    return next((each for each in pod.get("volumes") or () if each.get("name") == nearest.get("name")), None)


LABELS = {"app.kubernetes.io/part-of": "ray-platform"}

RETAINED = "ray-platform/retain"
"""Annotation of a claim that Pulumi keeps: for people, and for `impact`."""


def objects(storage: StorageSettings, namespace: str) -> dict[str, Body]:
    """The PersistentVolume for an existing source, and the PersistentVolumeClaim. Nothing for an existing claim.

    `namespace`: name of the tenant's namespace, for the volume. The claim has no namespace here.
    """
    if storage.claim is not None:
        return {}
    volume = _volume(storage, namespace)
    # An empty class: no default class may provision another volume.
    bound = {"storageClassName": "", "volumeName": volume["metadata"]["name"]} if volume else {}
    of_class = {"storageClassName": storage.storage_class} if storage.storage_class else {}
    annotations = {"annotations": {RETAINED: "true"}} if storage.protected else {}
    claim: Body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": storage.name, "labels": dict(LABELS), **annotations},
        "spec": {
            "accessModes": [storage.access_mode],
            "resources": {"requests": {"storage": storage.size}},
            **of_class,
            **bound,
        },
    }
    return {**({"volume": volume} if volume else {}), "claim": claim}


def _volume(storage: StorageSettings, namespace: str) -> Body | None:
    """Its name ends with a digest of its spec. So an edit creates another volume: Kubernetes does not change the source
    of one, and does not bind one again whose claim was deleted."""
    source: Body = {
        key: each.model_dump(by_alias=True) for key in ("nfs", "csi") if (each := getattr(storage, key)) is not None
    }
    if not source:
        return None
    spec = {
        **source,
        "capacity": {"storage": storage.size},
        "accessModes": [storage.access_mode],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        # No other claim may be bound to it.
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": storage.name},
    }
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:8]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        # Neither part has a dot, so no other namespace and storage have the same name.
        "metadata": {"name": f"{namespace}.{storage.name}.{digest}", "labels": dict(LABELS)},
        "spec": spec,
    }


@dataclass(frozen=True)
class Mounted:
    """The parts of Ray's pods that mount storage."""

    volumes: tuple[Body, ...] = ()
    mounts: tuple[Body, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def mounted(mounts: Sequence[StorageMountSettings], storages: Sequence[StorageSettings]) -> Mounted:
    """The parts for the mounts of a RayCluster. `storages`: those of its tenant; an unknown name counts as the claim's
    name."""
    claims = {each.name: each.claim_name for each in storages}
    names = dict.fromkeys(each.name for each in mounts)
    homes = [each.mount_path for each in mounts if each.hf_home]
    return Mounted(
        tuple({"name": name, "persistentVolumeClaim": {"claimName": claims.get(name, name)}} for name in names),
        tuple(_mount(each) for each in mounts),
        {HF_HOME: homes[0]} if homes else {},
    )


def _mount(mount: StorageMountSettings) -> Body:
    return {
        "name": mount.name,
        "mountPath": mount.mount_path,
        **({"subPath": mount.sub_path} if mount.sub_path else {}),
        **({"readOnly": True} if mount.read_only else {}),
    }
