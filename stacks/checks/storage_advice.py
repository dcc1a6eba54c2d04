"""Advice on the storage of tenants. Pure functions."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from components.storage.manifests import named_as_object_storage
from components.storage.settings import StorageSettings
from core.problems import Finding, Path
from core.stack_file import PREFIX
from stacks.checks.storage import uses
from stacks.settings import StackSettings, TenantSettings


def advice_on_storage(stack: StackSettings) -> Iterator[Finding]:
    yield from _homes_by_name(stack)
    yield from _volumes_of_two(stack)
    yield from _records_of_others(stack)


def _storages(stack: StackSettings) -> Iterator[tuple[Path, TenantSettings, StorageSettings]]:
    """All storages, each with its place in the stack file and its tenant."""
    for at, tenant in enumerate(stack.tenants):
        for number, storage in enumerate(tenant.storage):
            yield (f"{PREFIX}tenants", at, "storage", number), tenant, storage


def _volumes_of_two(stack: StackSettings) -> Iterator[Finding]:
    """Files that two tenants mount, so that each reads and changes the other's: an export of NFS or one inside it, and
    volumes of CSI with equal attributes."""
    owners: dict[tuple[str, ...], str] = {}
    above: dict[tuple[str, ...], str] = {}
    for path, tenant, storage in _storages(stack):
        if storage.nfs:
            server, folder = storage.nfs.server.lower(), PurePosixPath(storage.nfs.path)
            place, value = ("nfs", "path"), storage.nfs.path
            own: tuple[str, ...] = (server, str(folder))
            parents = [(server, str(each)) for each in folder.parents]
        elif storage.csi and storage.csi.volume_attributes:
            attributes = [f"{key}={each}" for key, each in sorted(storage.csi.volume_attributes.items())]
            own, parents, place = (storage.csi.driver, *attributes), [], ("csi", "volumeAttributes")
            value = None
        else:
            continue
        found = [owners.get(each) for each in (own, *parents)] + [above.get(own)]
        if owner := next((each for each in found if each not in (None, tenant.name)), None):
            message = f"tenant {owner} mounts these files, too, and each may change the other's: give each its folder"
            yield Finding((*path, *place), value, message, "shared-export")
        owners.setdefault(own, tenant.name)
        for parent in parents:
            above.setdefault(parent, tenant.name)


def _records_of_others(stack: StackSettings) -> Iterator[Finding]:
    """Records of ended runs that the runs themselves may change."""
    for at, tenant in enumerate(stack.tenants):
        name = tenant.run_history.storage if tenant.run_history else None
        used = [place for place, each in tenant.placed_clusters for mount in each.storage if mount.name == name]
        if used:
            message = "RayClusters mount it, too, and their users may change the records: give these one of their own"
            yield Finding((f"{PREFIX}tenants", at, "runHistory", "storage"), name, message, "shared-records")


def _homes_by_name(stack: StackSettings) -> Iterator[Finding]:
    """HF_HOME on a StorageClass whose name suggests object storage: a guess, because only the cluster has its
    provisioner."""
    for path, tenant, storage in _storages(stack):
        named = storage.storage_class and named_as_object_storage(storage.storage_class)
        if named and uses(tenant)[storage.name].hf_home:
            message = (
                f"{storage.storage_class!r} may be object storage by its name, and storage {storage.name!r} is "
                "HF_HOME: transformers is known to fail on S3-like filesystems. A preview reads the class's "
                "provisioner in the cluster; nothing to do if it is another one"
            )
            yield Finding((*path, "storageClass"), storage.storage_class, message, "hf-home-class-name")
