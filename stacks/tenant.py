"""What a tenant has: quota, account and RayClusters, and a guard that keeps them."""

from dataclasses import dataclass, replace
from typing import Any

import pulumi

from components.access.component import RayDeployer, RayDeployerArgs
from components.nodes import NodePool
from components.priority_classes.settings import PriorityNames
from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.tenant.component import Quota, QuotaArgs
from components.tenant.guard import TenantGuard, TenantGuardArgs

from .settings import TenantSettings


@dataclass(frozen=True)
class TenantArgs:
    """What a Tenant, or TenantClusters, are made from."""

    settings: TenantSettings
    pools: tuple[NodePool, ...]

    namespace: pulumi.Input[str]
    """The tenant's namespace; its output makes everything wait for it."""

    priorities: PriorityNames
    operator_namespace: str

    service_account: pulumi.Input[str | None] = None
    """Account of TenantClusters where their settings name none; a Tenant makes its own."""

    context: str | None = None


class Tenant(pulumi.ComponentResource):
    """What the platform's stack has for a tenant.

    RayClusters wait for everything else, and for what the component depends on (`depends_on`), such as the operator.
    The guard waits for all of it: it is the first to be deleted, and where it refuses, the rest stays.

    Outputs:
        clusters: of each RayCluster, by `<namespace>/<name>`, where it is, its worker groups, its state and status.
        service_account: the account that the RayClusters run as.
    """

    clusters: dict[str, Any]
    service_account: pulumi.Output[str]

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Tenant", name, None, opts)
        settings, below = args.settings, pulumi.ResourceOptions(parent=self)
        quota = Quota(f"{name}/quota", QuotaArgs(args.namespace, settings.quota, settings.limits_in_force), below)
        deployer = RayDeployer(f"{name}/ray-deployer", RayDeployerArgs(settings.ray_deployer, args.namespace), below)
        self.service_account = deployer.service_account
        made = pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None),
            pulumi.ResourceOptions(parent=self, depends_on=[quota, deployer]),
        )
        clusters = TenantClusters(name, replace(args, service_account=deployer.service_account), made)
        TenantGuard(
            f"{name}/guard",
            TenantGuardArgs(settings.name, args.namespace, settings.allow_delete, args.context),
            pulumi.ResourceOptions.merge(made, pulumi.ResourceOptions(depends_on=[clusters])),
        )
        self.clusters = clusters.clusters
        self.register_outputs({"clusters": self.clusters, "service_account": self.service_account})


class TenantClusters(pulumi.ComponentResource):
    """A tenant's RayClusters: all that a stack makes on a platform that belongs to another stack.

    Outputs:
        clusters: as those of Tenant.
    """

    clusters: dict[str, Any]

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:TenantClusters", name, None, opts)
        namespace = args.settings.namespace_name
        made = {
            cluster.name: RayCluster(
                # Neither part has a slash, so no other pair has this name.
                f"{name}/{cluster.name}",
                RayClusterArgs(
                    settings=cluster,
                    pools=args.pools,
                    namespace=args.namespace,
                    service_account=args.service_account,
                    priorities=args.priorities,
                    operator_namespace=args.operator_namespace,
                    context=args.context,
                    import_id=f"{namespace}/{cluster.name}" if cluster.adopt else None,
                ),
                pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None),
            )
            for cluster in args.settings.clusters
        }
        self.clusters = {f"{namespace}/{cluster}": _summary(resource) for cluster, resource in made.items()}
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
