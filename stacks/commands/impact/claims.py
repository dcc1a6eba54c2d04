"""What creating, changing or deleting storage means for running pods and for the data. Data, by kind of claim."""

from collections.abc import Mapping
from typing import Any

from components.storage.manifests import RETAINED
from kuberay.edits import Verdict
from stacks.commands.impact.effects import Fixed, Kind

_OF_CLAIMS = "kubernetes pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimUpdate"

_OF_CLAIM = frozenset({"accessModes", "storageClassName", "selector", "volumeName"})
_FIXED_CLAIM = "Kubernetes does not change these fields of a PersistentVolumeClaim"
_GROWS = "the volume grows if its StorageClass allows it; otherwise, or if the size is less, `pulumi up` fails"
_NOT_RETAINED = "copy the data elsewhere, set retain: false of the storage in a separate `up`, then make the edit"

CLAIM = Kind(
    "a volume is created",
    _GROWS,
    "is deleted, and the data with its volume, unless the reclaim policy of its StorageClass is Retain",
    Verdict.DELETES,
    "copy the data elsewhere first",
    Fixed(
        _OF_CLAIM,
        "the data are deleted with their volume, unless the reclaim policy of its StorageClass is Retain, and an "
        "empty volume is created",
        _FIXED_CLAIM,
        "copy the data elsewhere first",
        _OF_CLAIMS,
    ),
)
"""A claim for which a volume is created."""

RETAINED_CLAIM = Kind(
    "a volume is created, which Pulumi keeps",
    _GROWS,
    "`pulumi up` refuses to delete it with its data",
    Verdict.REFUSED,
    _NOT_RETAINED,
    Fixed(
        _OF_CLAIM,
        "`pulumi up` refuses to replace it with its data",
        _FIXED_CLAIM,
        _NOT_RETAINED,
        _OF_CLAIMS,
        Verdict.REFUSED,
    ),
)
"""A claim of a tenant's storage with `retain`."""

BOUND_CLAIM = Kind(
    "makes an existing volume available to the pods of its namespace",
    "is available to pods at once",
    "the data stay where they are, and pods can no longer mount them; it is deleted once no pod mounts it any more",
    fixed=Fixed(
        _OF_CLAIM,
        "the claim is created again for another volume, once no pod mounts it; all data stay where they are",
        _FIXED_CLAIM,
        "apply the edit when nothing runs, or add another storage",
        _OF_CLAIMS,
    ),
)
"""A claim of an existing volume: a tenant's storage with `nfs` or `csi`."""

VOLUME = Kind(
    "makes an existing volume available to its claim",
    "another object for the existing volume replaces it; the data stay",
    "the data stay where they are, and are no longer available here",
)
"""An existing volume, of a tenant's storage with `nfs` or `csi`."""


def claim_of(body: Mapping[str, Any]) -> Kind:
    """What edits of a PersistentVolumeClaim mean."""
    if RETAINED in (body["metadata"].get("annotations") or {}):
        return RETAINED_CLAIM
    return BOUND_CLAIM if body["spec"].get("volumeName") else CLAIM
