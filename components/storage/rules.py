"""Conflicts between a RayCluster's mounts of storage and its other settings. Pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.storage.settings import StorageMountSettings
from core.problems import Path, Problem

_OF_RAY = ("/tmp/ray", "/dev/shm", "/home/ray/anaconda3")  # noqa: S108 (paths in Ray's containers)
"""Ray's sessions and objects of one pod, which pods cannot share, and Ray itself in its images."""


def mount_problems(
    mounts: Sequence[StorageMountSettings],
    volumes: Sequence[Mapping[str, Any]],
    volume_mounts: Sequence[Mapping[str, Any]],
) -> Iterator[Problem]:
    """Problems of a RayCluster's `storage` beside its own volumes and mounts; paths in its settings."""
    if not mounts:
        return
    names = {str(each.get("name")): f"volumes[{at}]" for at, each in enumerate(volumes)}
    places = {str(each.get("mountPath")): f"volumeMounts[{at}]" for at, each in enumerate(volume_mounts)}
    home: int | None = None
    for at, mount in enumerate(mounts):
        path: Path = ("storage", at)
        if (taken := names.pop(mount.name, None)) is not None:
            message = f"{taken} has this name already: rename that volume, or the storage"
            yield Problem((*path, "name"), mount.name, message, "storage-name")
        if mount.mount_path in places:
            message = f"{places[mount.mount_path]} is mounted there already: use another path"
            yield Problem((*path, "mountPath"), mount.mount_path, message, "storage-path")
        places.setdefault(mount.mount_path, f"storage[{at}]")
        if hidden := [each for each in _OF_RAY if f"{each}/".startswith(f"{mount.mount_path.rstrip('/')}/")]:
            message = f"a mount here would hide {hidden[0]}, which Ray needs: use another path, such as /mnt/data"
            yield Problem((*path, "mountPath"), mount.mount_path, message, "storage-path")
        if mount.hf_home and home is not None:
            message = f"storage[{home}] is HF_HOME already, and there is one: remove hfHome from one of them"
            yield Problem((*path, "hfHome"), True, message, "hf-home")
        elif mount.hf_home and mount.read_only:
            message = "head and workers need read and write access to HF_HOME: remove readOnly, or hfHome"
            yield Problem((*path, "readOnly"), True, message, "hf-home")
        home = at if mount.hf_home and home is None else home
