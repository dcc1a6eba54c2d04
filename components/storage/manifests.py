"""Renders a tenant's storage into Kubernetes objects, and its mounts into those of pods. Pure functions."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.storage.object_storage import HF_HOME
from components.storage.settings import StorageMountSettings, StorageSettings

Body = dict[str, Any]

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
