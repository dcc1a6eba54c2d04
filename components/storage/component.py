"""How a tenant's shared storage is provisioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components.bodies import in_namespace
from components.cluster import Cluster
from components.kubernetes import KubernetesObject
from components.kubernetes_cluster import KubernetesCluster
from components.storage.existing import look
from components.storage.manifests import objects
from components.storage.settings import StorageSettings, Use


@dataclass(frozen=True)
class StorageArgs:
    """Arguments of Storage."""

    storages: Sequence[StorageSettings]

    namespace: pulumi.Input[str]
    """The tenant's namespace; claims wait for this Output."""

    namespace_name: str
    """The namespace's name, which is part of the names of volumes."""

    uses: Mapping[str, Use] = field(default_factory=dict)
    """How RayClusters use each storage, by its name."""

    cluster: Cluster = field(default_factory=KubernetesCluster)


class Storage(pulumi.ComponentResource):
    """The PersistentVolumeClaims of a tenant, and the PersistentVolumes of existing sources.

    What is kept:

    - The data of `nfs` and `csi`, always: the volumes have reclaim policy Retain.
    - A claim of `storageClass`, unless `retain` is false: Pulumi refuses to delete or replace it (`protect`). If it is
      unprotected in the state, its object stays (`retainOnDelete`).
    - An existing `claim`, and one of `storageClass`, unless `retain` is false: the tenant's guard refuses to remove the
      tenant. `retainOnDelete` alone would not keep them, because Kubernetes deletes all objects of a namespace.

    What is not kept: `kubectl delete namespace` is not prevented; the reclaim policy of the volume then decides about
    the data.

    In previews and updates the live cluster is read: object storage for HF_HOME, and an existing claim that only one
    node can mount but several pods do, raise pulumi.RunError.
    """

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Storage", name, None, opts)
        for storage in args.storages:
            use = args.uses.get(storage.name, Use())
            if fault := look(storage, use, args.namespace_name, args.cluster):
                raise pulumi.RunError(f"storage {storage.name!r} of namespace {args.namespace_name!r} {fault}")
            bodies = objects(storage, args.namespace_name)
            after = []
            if volume := bodies.get("volume"):
                after.append(
                    KubernetesObject(f"{name}/{storage.name}-volume", volume, pulumi.ResourceOptions(parent=self))
                )
            if claim := bodies.get("claim"):
                kept = storage.protected
                options = pulumi.ResourceOptions(
                    parent=self, depends_on=after, protect=kept or None, retain_on_delete=kept or None
                )
                KubernetesObject(f"{name}/{storage.name}", in_namespace(claim, args.namespace), options)
        self.register_outputs({})
