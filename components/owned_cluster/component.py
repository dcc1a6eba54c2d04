"""What a stack creates for the RayClusters of a RayJob, a RayService or the runs of a job template, before these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pulumi

from components.cluster import Cluster
from components.dynamic.redis_keys import RedisCleanUp, RedisCleanUpArgs
from components.kubernetes import dependencies
from components.kubernetes_cluster import KubernetesCluster
from components.objects import Object
from components.ray_cluster.pods import OPTIONS, deletion_seconds
from components.ray_cluster.settings import OwnedClusterSettings
from components.redis_gateway.manifests import UnsupportedKubernetesError, check_kubernetes, has_gateway
from components.tls.authority import ClusterAuthorityArgs, generated_authority

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True)
class OwnerArgs(Generic[SettingsT]):
    """Arguments of a RayJob, and of a RayService."""

    settings: SettingsT

    objects: Sequence[Object]
    """All objects of the RayJob (ray_job_objects) or of the RayService (ray_service_objects)."""

    namespace: pulumi.Input[str]

    operator_namespace: str = "ray-system"
    """Where to look for the operator when it does not start."""

    cluster: Cluster = field(default_factory=KubernetesCluster)


@dataclass(frozen=True)
class OwnedClusterArgs:
    settings: OwnedClusterSettings

    spec: Mapping[str, Any]
    """The RayCluster's spec in the owner's body."""

    namespace: pulumi.Input[str]

    cluster: Cluster

    label: str | None
    """Label of the owner's RayClusters; None for a job template: its runs are deleted by people, and stay without
    it."""


def prerequisites(
    name: str,
    args: OwnedClusterArgs,
    parent: pulumi.Resource,
    opts: pulumi.ResourceOptions | None,
    made: Sequence[pulumi.Resource] = (),
) -> pulumi.ResourceOptions:
    """Creates the authority of a RayCluster with TLS, and what waits for the clean-up of one with fault tolerance.

    Returns the options with which its owner depends on these, on `made`, and on all that `opts` depends on. `name`:
    that of the owner's resource. `made`: the objects that its pods need, such as a Certificate.
    Raises pulumi.RunError if the cluster's Kubernetes is too old for the gateway.
    """
    settings = args.settings
    authority = ClusterAuthorityArgs(settings.name, args.namespace, args.cluster.connection)
    needed: list[Any] = [*made, *generated_authority(f"{name}-tls", settings.tls, authority, parent)]
    if settings.fault_tolerance and OPTIONS in args.spec:
        _check_gateway(settings.name, args)
        if args.label:
            limit = deletion_seconds(settings.annotations)
            clean_up = RedisCleanUpArgs(args.namespace, settings.name, args.label, limit, args.cluster.connection)
            # The pod that deletes the keys has the head's volumes.
            waits = pulumi.ResourceOptions(parent=parent, depends_on=[*needed, *dependencies(opts)])
            needed.append(RedisCleanUp(f"{name}-redis-clean-up", clean_up, waits))
    return pulumi.ResourceOptions(depends_on=[*needed, *dependencies(opts)])


def _check_gateway(owner: str, args: OwnedClusterArgs) -> None:
    if not has_gateway(args.spec):
        return
    try:
        check_kubernetes(args.cluster)
    except UnsupportedKubernetesError as error:
        raise pulumi.RunError(f"{owner!r}: {error}") from error
