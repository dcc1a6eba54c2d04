"""Settings of a tenant's shared storage and of its mounts in a RayCluster, and conflicts of the mounts with other
settings."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic.alias_generators import to_camel

from core.problems import Path, Problem
from core.types import CheckedSettings, DnsLabel, DnsSubdomain, Memory, NonEmptyText, Settings
from kuberay.running import LOGS, PYTHON, SHARED_MEMORY, hides


def _absolute(path: str) -> str:
    clean = posixpath.normpath(f"/{path.lstrip('/')}")
    if path != clean or ":" in path:
        raise ValueError(f"{path!r} is not an absolute path without a colon: write {clean.replace(':', '-')!r}")
    return path


def _inside(path: str) -> str:
    if path.startswith("/") or path != posixpath.normpath(path) or path.split("/")[0] in ("..", "."):
        raise ValueError(f"{path!r} is not a path inside the storage: write one such as 'models' or 'team/models'")
    return path


def _server(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?", text, re.ASCII):
        raise ValueError(f"{text!r} is not a server: write a name or an address alone, such as nfs.example.com")
    if text.lower() in ("localhost", "::1") or text.startswith("127."):
        raise ValueError(f"{text!r} is each node itself, so that each would mount its own files: name one server")
    return text


def _not_of_kuberay(name: str) -> str:
    if name in (LOGS, SHARED_MEMORY):
        raise ValueError(f"KubeRay uses the volume {name!r} of a pod for Ray's logs or shared memory: use another name")
    return name


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
"""A path from the root on: `/mnt/models`."""


class NfsSettings(Settings):
    """An existing export of an NFS server. The kubelet of each node mounts it, so no NetworkPolicy applies."""

    server: Annotated[str, AfterValidator(_server)]
    """Name or address of the server, which each node must reach."""

    path: AbsolutePath
    """Exported path. User 1000 of group 100, as which Ray runs, must be able to write there."""


class CsiSettings(Settings):
    """An existing volume of a CSI driver that needs no Secret of its own. For others, create the claim and set
    `claim`."""

    driver: Annotated[DnsSubdomain, Field(max_length=63)]
    """Name of the driver, as in `kubectl get csidrivers`."""

    volume_handle: NonEmptyText
    """The driver's name of the volume. Most drivers require that no other PersistentVolume of the cluster has it."""

    volume_attributes: dict[str, str] = Field(default_factory=dict)
    """Further attributes, as the driver's documentation lists them."""


_SOURCES = ("claim", "storage_class", "nfs", "csi")


class StorageSettings(CheckedSettings):
    """A storage of a tenant, for any number of its RayClusters. It has one source: `claim`, `storageClass`, `nfs` or
    `csi`.

    An existing source is only bound, and never deleted.
    """

    name: Annotated[DnsLabel, AfterValidator(_not_of_kuberay)]
    """Name by which RayClusters mount it, and of the PersistentVolumeClaim that is created."""

    claim: DnsSubdomain | None = None
    """An existing PersistentVolumeClaim in the tenant's namespace. The stack neither changes nor deletes it."""

    storage_class: DnsSubdomain | None = None
    """StorageClass from which the stack creates a PersistentVolumeClaim."""

    nfs: NfsSettings | None = None
    """The stack creates a PersistentVolume for it with reclaim policy Retain, and a PersistentVolumeClaim."""

    csi: CsiSettings | None = None
    """As `nfs`, for a volume of a CSI driver."""

    size: Memory | None = None
    """Size of the claim; required unless `claim` is set. With `nfs` and `csi` it limits nothing, but a quota counts
    it."""

    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] = "ReadWriteMany"
    """Access mode of the claim. `ReadWriteOnce` is for one pod: a RayCluster that is a head alone."""

    retain: bool = True
    """True: the tenant is not removed with its namespace while it has the claim, and Pulumi refuses to delete or
    replace a claim that it has created. `false`: the claim is deleted with its namespace, a created one also with its
    entry here; the data are deleted unless the volume's reclaim policy is Retain. Neither prevents
    `kubectl delete namespace`. Not with `nfs` and `csi`, whose data always stay."""

    @property
    def claim_name(self) -> str:
        """The PersistentVolumeClaim that pods mount."""
        return self.claim or self.name

    @property
    def retained(self) -> bool:
        """Whether the claim must stay, because its data may be deleted with it."""
        return self.retain and not (self.nfs or self.csi)

    @property
    def protected(self) -> bool:
        """Whether Pulumi refuses to delete the claim."""
        return self.retained and self.claim is None

    def problems(self) -> Iterator[Problem]:
        sources = [to_camel(each) for each in _SOURCES if getattr(self, each) is not None]
        if not sources:
            message = f"storage {self.name!r} has no source: set claim, storageClass, nfs or csi"
            yield Problem(("name",), self.name, message, "storage-source")
            return
        for second in sources[1:]:
            message = f"{sources[0]} is the source already: remove one of them, or make two storages"
            yield Problem((second,), None, message, "storage-source")
        if self.claim is not None:
            for field in sorted({"size", "access_mode"} & self.model_fields_set):
                message = "the existing claim determines it: remove this key"
                yield Problem((to_camel(field),), getattr(self, field), message, "storage-source")
        elif self.size is None:
            message = f"{sources[0]} needs a size, which Kubernetes requires of every claim: set size, such as 500Gi"
            yield Problem((sources[0],), None, message, "storage-size")
        if "retain" in self.model_fields_set and sources[0] in ("nfs", "csi"):
            message = f"the data of {sources[0]} always stay, because the stack only binds them: remove this key"
            yield Problem(("retain",), self.retain, message, "storage-source")


class StorageMountSettings(Settings):
    """A storage of the tenant in the Ray containers of head and all workers."""

    name: DnsLabel
    """Name of the storage in the tenant's `storage`."""

    mount_path: AbsolutePath
    """Where it is mounted."""

    sub_path: Annotated[str, AfterValidator(_inside)] | None = None
    """Folder of the storage that is mounted. Default: all of it."""

    read_only: bool = False
    """True: the RayCluster cannot write there."""

    hf_home: bool = False
    """True: HF_HOME is the mount path, so that head and workers download a model once. Not on object storage, on which
    transformers is known to fail."""


@dataclass(frozen=True)
class Use:
    """How the RayClusters of a stack use a storage."""

    hf_home: bool = False
    """Whether it is HF_HOME of one."""

    several: bool = False
    """Whether several pods mount it."""


_OF_RAY = ("/tmp/ray", "/dev/shm", PYTHON)  # noqa: S108 (paths in Ray's containers)
"""Ray's sessions and objects of one pod, which pods cannot share, and Ray itself in its images."""


_WHOLE = (
    *("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr/bin", "/usr/lib", "/usr/sbin"),
    "/var/run/secrets/kubernetes.io/serviceaccount",
)
_OF_CONTAINERS = (
    *("/boot", "/root", "/run", "/usr", "/usr/lib64", "/usr/local", "/usr/local/bin", "/usr/local/lib"),
    *("/var", "/var/lib", "/var/run", *_WHOLE),
)
"""Folders that are the image's or the kubelet's. Nothing is mounted over them, and nothing inside the last ones."""


def _covers(mounted: str, folder: str) -> bool:
    return mounted == folder or (folder in _WHOLE and mounted.startswith(f"{folder}/") and mounted not in _OF_RAY)


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
        if hidden := [each for each in _OF_RAY if hides(mount.mount_path, each)]:
            message = f"a mount here would hide {hidden[0]}, which Ray needs: use another path, such as /mnt/data"
            yield Problem((*path, "mountPath"), mount.mount_path, message, "storage-path")
        if wrong := [each for each in _OF_CONTAINERS if _covers(mount.mount_path, each)]:
            message = f"the image has files in {wrong[0]}: use another path, such as /mnt/data"
            yield Problem((*path, "mountPath"), mount.mount_path, message, "storage-path")
        if mount.hf_home and home is not None:
            message = f"storage[{home}] is HF_HOME already, and there is one: remove hfHome from one of them"
            yield Problem((*path, "hfHome"), True, message, "hf-home")
        elif mount.hf_home and mount.read_only:
            message = "head and workers need read and write access to HF_HOME: remove readOnly, or hfHome"
            yield Problem((*path, "readOnly"), True, message, "hf-home")
        home = at if mount.hf_home and home is None else home
