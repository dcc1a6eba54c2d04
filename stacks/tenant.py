"""What a namespace owner has: access for people, accounts for pods, NetworkPolicies, and RayClusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components.access.component import RayDeployer, RayDeployerArgs, TenantAccess, TenantAccessArgs
from components.access.settings import Subject
from components.network.component import NetworkPolicies, NetworkPoliciesArgs
from components.network.manifests import Body
from components.nodes import NodePool
from components.operator.component import KubeRayOperator
from components.priority_classes.component import PriorityClasses
from components.priority_classes.settings import PriorityNames
from components.ray_cluster.component import RayCluster, RayClusterArgs

from .access import named_clusters, own_accounts
from .settings import TenantSettings


@dataclass(frozen=True)
class TenantArgs:
    """What a Tenant is made from."""

    settings: TenantSettings
    cluster_admins: tuple[Subject, ...]
    pools: tuple[NodePool, ...]
    namespace: pulumi.Input[str]
    operator: KubeRayOperator
    priorities: PriorityNames
    priority_classes: PriorityClasses
    operator_namespace: str
    policies: Sequence[Body] = ()
    """NetworkPolicies of the namespace."""

    context: str | None = None


class Tenant(pulumi.ComponentResource):
    """A tenant's RayClusters, who may do what with them, and the accounts that they run as.

    Outputs:
        clusters: of each RayCluster, by `<namespace>/<name>`, where it is, its worker groups, its state and status.
    """

    clusters: dict[str, Any]

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Tenant", name, None, opts)
        settings = args.settings
        access = TenantAccess(
            f"{name}-access",
            TenantAccessArgs(
                namespace=args.namespace,
                namespace_name=settings.namespace_name,
                # Cluster admins may do in each tenant's namespace what its own admins may.
                admins=tuple(dict.fromkeys([*args.cluster_admins, *settings.admins])),
                users=settings.users,
                clusters=tuple(named_clusters(settings, args.pools)),
                accounts=own_accounts(settings),
            ),
            pulumi.ResourceOptions(parent=self),
        )
        policies = NetworkPolicies(
            f"{name}-network",
            NetworkPoliciesArgs(args.policies, args.namespace),
            pulumi.ResourceOptions(parent=self),
        )
        before: list[pulumi.Resource] = [args.operator, args.priority_classes, access, policies]
        if settings.ray_deployer:
            before.append(
                RayDeployer(
                    f"{name}-ray-deployer",
                    RayDeployerArgs(settings.ray_deployer, args.namespace),
                    pulumi.ResourceOptions(parent=self),
                )
            )
        made = {
            cluster.name: RayCluster(
                f"{name}-{cluster.name}",
                RayClusterArgs(
                    settings=cluster,
                    pools=args.pools,
                    namespace=args.namespace,
                    service_account=settings.service_account(cluster),
                    priorities=args.priorities,
                    operator_namespace=args.operator_namespace,
                    context=args.context,
                    import_id=f"{settings.namespace_name}/{cluster.name}" if cluster.adopt else None,
                ),
                pulumi.ResourceOptions(parent=self, depends_on=before),
            )
            for cluster in settings.clusters
        }
        self.clusters = {
            f"{settings.namespace_name}/{cluster}": _summary(resource) for cluster, resource in made.items()
        }
        self.register_outputs({"clusters": self.clusters})


def _summary(cluster: RayCluster) -> pulumi.Output[dict[str, Any]]:
    return pulumi.Output.all(cluster.connection, cluster.status).apply(
        lambda known: {
            **known[0],
            "state": known[1]["state"],
            "status": known[1],
            "greatestGpus": cluster.greatest_gpus,
            "workerGroups": cluster.worker_groups,
        }
    )
