"""Looks at the live cluster for what a stack file does not have: the provisioner of a class, and an existing claim.

Only reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.cluster import Cluster, ClusterUnreachableError
from components.storage.manifests import WHY, is_object_storage
from components.storage.settings import StorageSettings, Use

_OF_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}


@dataclass(frozen=True)
class Live:
    """The objects of a storage in the cluster; None: it does not exist."""

    claim: Mapping[str, Any] | None = None
    volume: Mapping[str, Any] | None = None
    storage_class: Mapping[str, Any] | None = None


def look(storage: StorageSettings, use: Use, namespace: str, cluster: Cluster) -> str | None:
    """Why a storage does not fit its use; None if it does, or if that cannot be read."""
    if storage.claim is None and not (storage.storage_class and use.hf_home):
        return None
    try:
        return unfit(storage, use, _live(storage, namespace, cluster))
    except ClusterUnreachableError:
        return None


def unfit(storage: StorageSettings, use: Use, live: Live) -> str | None:
    """As `look`, for objects that were read."""
    modes = set((live.claim or {}).get("spec", {}).get("accessModes") or ())
    if use.several and modes and modes <= _OF_ONE_NODE:
        return (
            f"claim {storage.claim_name!r} is {', '.join(sorted(modes))}, and several pods mount it, perhaps on "
            "several nodes: use a claim with ReadWriteMany"
        )
    source = (live.volume or {}).get("spec", {}).get("csi") or {}
    made = live.storage_class or {}
    drivers = (
        (source.get("driver"), source.get("volumeAttributes")),
        (made.get("provisioner"), made.get("parameters")),
    )
    for driver, parameters in drivers:
        if use.hf_home and driver and is_object_storage(driver, parameters or {}):
            return f"is HF_HOME, and {driver} provides object storage: {WHY}"
    return None


def _live(storage: StorageSettings, namespace: str, cluster: Cluster) -> Live:
    claim = cluster.get("v1", "persistentvolumeclaims", namespace, storage.claim) if storage.claim else None
    spec = (claim or {}).get("spec", {})
    volume = cluster.get("v1", "persistentvolumes", None, spec["volumeName"]) if spec.get("volumeName") else None
    name = storage.storage_class or spec.get("storageClassName")
    found = cluster.get("storage.k8s.io/v1", "storageclasses", None, name) if name else None
    return Live(claim, volume, found)
