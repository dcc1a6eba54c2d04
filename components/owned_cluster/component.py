"""What a stack creates for the RayClusters of a RayJob, a RayService or the runs of a job template, before these."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import Cluster
from components.owned_cluster.provider import RedisCleanUp, RedisCleanUpArgs
from components.ray_cluster.fault_tolerance import OPTIONS, deletion_seconds
from components.ray_cluster.settings import OwnedClusterSettings
from components.redis_gateway.manifests import NAME as GATEWAY
from components.redis_gateway.supported import UnsupportedKubernetesError, check_kubernetes
from components.state import whole
from components.tls.authority import ClusterAuthority, ClusterAuthorityArgs


@dataclass(frozen=True)
class OwnedClusterArgs:
    """Arguments of `before_owned`."""

    settings: OwnedClusterSettings

    spec: Mapping[str, Any]
    """The RayCluster's spec in the owner's body."""

    namespace: pulumi.Input[str]

    cluster: Cluster

    label: str | None
    """Label of the owner's RayClusters; None for a job template: its runs are deleted by people, and stay without
    it."""


def before_owned(
    name: str, args: OwnedClusterArgs, parent: pulumi.Resource, opts: pulumi.ResourceOptions | None
) -> pulumi.ResourceOptions:
    """Creates the authority of a RayCluster with TLS, and what waits for the clean-up of one with fault tolerance.

    Returns the options with which its owner depends on these and on all that `opts` depends on. `name`: that of the
    owner's resource.
    Raises pulumi.RunError if the cluster's Kubernetes is too old for the gateway.
    """
    settings, after = args.settings, pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
    needed: list[Any] = []
    if settings.tls is not None:
        authority = ClusterAuthorityArgs(settings.tls, settings.name, args.namespace, args.cluster.connection)
        made = ClusterAuthority(f"{name}-tls", authority, pulumi.ResourceOptions(parent=parent))
        needed.append(whole(made))
    if settings.fault_tolerance and OPTIONS in args.spec:
        _check_gateway(settings.name, args)
        if args.label:
            limit = deletion_seconds(settings.annotations)
            clean_up = RedisCleanUpArgs(args.namespace, settings.name, args.label, limit, args.cluster.connection)
            # The pod that deletes the keys has the head's volumes.
            waits = pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(parent=parent, depends_on=[*needed]))
            needed.append(RedisCleanUp(f"{name}-redis-clean-up", clean_up, waits))
    return pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=needed)) if needed else after


def _check_gateway(owner: str, args: OwnedClusterArgs) -> None:
    initial = args.spec["headGroupSpec"]["template"]["spec"].get("initContainers") or ()
    if not any(each.get("name") == GATEWAY for each in initial):
        return
    try:
        check_kubernetes(args.cluster)
    except UnsupportedKubernetesError as error:
        raise pulumi.RunError(f"{owner!r}: {error}") from error
