"""The storage of tenants between the parts of a stack: names, pods that share it, and the home of Hugging Face. Pure
functions."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from components.ray_cluster.origin import setting_at
from components.ray_cluster.settings import RayClusterSettings
from components.redis.connection import NAME as REDIS
from components.storage.manifests import HF_HOME, WHY, is_object_storage, objects, volume_of_home
from components.storage.settings import StorageSettings, Use
from core.body import Body
from core.problems import Path, Problem
from kuberay.rules import groups_of
from stacks.objects.access import unknown
from stacks.settings import StackSettings, TenantSettings


def claims_of(tenant: TenantSettings) -> list[Body]:
    """The PersistentVolumeClaims that the stack creates for a tenant's storage."""
    found = (objects(each, tenant.namespace_name) for each in tenant.storage)
    return [bodies["claim"] for bodies in found if bodies]


def uses(tenant: TenantSettings) -> Mapping[str, Use]:
    """How the tenant's RayClusters use each storage, by its name."""
    # During an update a service has two heads.
    second = [service.own_cluster for service in tenant.services if service.upgrades]
    pods = Counter(name for each in (*tenant.all_clusters, *second) for name in _mounted_by(each))
    pods.update([tenant.run_history.storage] if tenant.run_history else ())
    homes = {mount.name for each in tenant.all_clusters for mount in each.storage if mount.hf_home}
    return {each.name: Use(each.name in homes, pods[each.name] > 1) for each in tenant.storage}


def _mounted_by(cluster: RayClusterSettings) -> Iterator[str]:
    """The storages that a RayCluster mounts, once for the head and once for all workers."""
    names = {each.name for each in cluster.storage}
    yield from names
    if cluster.workers or cluster.worker_groups:
        yield from names


def problems_of_storage(stack: StackSettings) -> Iterator[Problem]:
    """Mounts of unknown storage, claims named as those of Redis, volumes of a driver that have two PersistentVolumes,
    and storage of one node that several pods mount."""
    volumes: dict[tuple[str, str], str] = {}
    for index, tenant in enumerate(stack.tenants):
        names = [each.name for each in tenant.storage]
        for place, cluster in tenant.placed_clusters:
            for position, mount in enumerate(cluster.storage):
                mounted: Path = ("tenants", index, *place, "storage", position, "name")
                yield from unknown(tenant, mounted, mount.name, "storage", names, "the tenant's storage")
        own_redis = stack.redis is not None and stack.redis.scope == "perTenant"
        for at, storage in enumerate(tenant.storage):
            if own_redis and storage.claim is None and storage.name.startswith((REDIS, f"data-{REDIS}")):
                message = f"names that begin with {REDIS} or data-{REDIS} are for the claims of Redis: use another"
                yield Problem(("tenants", index, "storage", at, "name"), storage.name, message, "storage-name")
            if storage.csi:
                volume = (storage.csi.driver, storage.csi.volume_handle)
                if volume in volumes:
                    message = (
                        f"{volumes[volume]} is this volume already, and drivers tell volumes apart by it: use one of "
                        "them"
                    )
                    again: Path = ("tenants", index, "storage", at, "csi", "volumeHandle")
                    yield Problem(again, volume[1], message, "storage-volume")
                volumes.setdefault(volume, f"tenants[{index}].storage[{at}]")
            if storage.access_mode == "ReadWriteOnce" and uses(tenant)[storage.name].several:
                message = (
                    f"several pods mount storage {storage.name!r}, and ReadWriteOnce is for one node: remove this key, "
                    "with a class or driver that supports ReadWriteMany, or mount it in a single head without workers"
                )
                path = ("tenants", index, "storage", at, "accessMode")
                yield Problem(path, storage.access_mode, message, "storage-access-mode")


def problems_of_home(
    stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings, body: Mapping[str, Any]
) -> list[Problem]:
    """HF_HOME on object storage, and pod templates that set another HF_HOME; paths in the cluster's settings, each
    once."""
    storages = {each.claim_name: each for each in tenant.storage}
    found: dict[Path, Problem] = {}
    for problem in _in_groups(cluster, storages, body["spec"]):
        path = problem.path
        if path[0] == "spec":
            path = setting_at(cluster, stack.nodes, body["spec"], path)
        found.setdefault(path, Problem(path, problem.value, problem.message, problem.rule))
    return list(found.values())


def _in_groups(
    cluster: RayClusterSettings, storages: Mapping[str, StorageSettings], spec: Mapping[str, Any]
) -> Iterator[Problem]:
    """Paths in the RayCluster's body, or in its settings."""
    home = next(((at, each) for at, each in enumerate(cluster.storage) if each.hf_home), None)
    for path, group in groups_of(spec):
        pod, at = group["template"]["spec"], (*path, "template", "spec")
        for index, variable in enumerate(pod["containers"][0].get("env") or ()):
            if home and variable.get("name") == HF_HOME and variable.get("value") != home[1].mount_path:
                message = (
                    f"storage {home[1].name!r} sets it to {home[1].mount_path}: remove this variable, or its hfHome"
                )
                where = (*at, "containers", 0, "env", index)
                yield Problem(where, variable.get("value"), message, "hf-home")
        volume = volume_of_home(pod)
        if volume and (driver := _object_storage(volume, storages)):
            message = f"is on {driver}, which is object storage: {WHY}"
            if home:
                yield Problem(("storage", home[0], "hfHome"), True, f"HF_HOME {message}", "hf-home-object-storage")
            else:
                index = pod["volumes"].index(volume)
                message = f"the home of Hugging Face, HF_HOME or its default, {message}"
                yield Problem((*at, "volumes", index), None, message, "hf-home-object-storage")


def _object_storage(volume: Mapping[str, Any], storages: Mapping[str, StorageSettings]) -> str | None:
    """The driver of a volume that is known to be object storage."""
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    source = volume.get("csi") or {}
    driver, attributes = source.get("driver", ""), source.get("volumeAttributes") or {}
    if (storage := storages.get(str(claim))) and storage.csi:
        driver, attributes = storage.csi.driver, storage.csi.volume_attributes
    return driver if is_object_storage(driver, attributes) else None
