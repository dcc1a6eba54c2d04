"""What a namespace owner has: an account for Ray's pods, and RayClusters."""

from dataclasses import dataclass
from typing import Any

import pulumi

from components.access.component import RayDeployer, RayDeployerArgs
from components.nodes import NodePool
from components.operator.component import KubeRayOperator
from components.priority_classes.component import PriorityClasses
from components.priority_classes.settings import PriorityNames
from components.ray_cluster.component import RayCluster, RayClusterArgs

from .settings import TenantSettings


@dataclass(frozen=True)
class TenantArgs:
    """What a Tenant is made from."""

    settings: TenantSettings
    pools: tuple[NodePool, ...]
    namespace: pulumi.Input[str]
    operator: KubeRayOperator
    priorities: PriorityNames
    priority_classes: PriorityClasses
    operator_namespace: str
    context: str | None = None


class Tenant(pulumi.ComponentResource):
    """A tenant's RayClusters, and the account that they run as.

    Outputs:
        clusters: of each RayCluster, by `<namespace>/<name>`, where it is, its worker groups, its state and status.
    """

    clusters: dict[str, Any]

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Tenant", name, None, opts)
        settings = args.settings
        deployer = RayDeployer(
            f"{name}-ray-deployer",
            RayDeployerArgs(settings.ray_deployer, args.namespace),
            pulumi.ResourceOptions(parent=self),
        )
        made = {
            cluster.name: RayCluster(
                f"{name}-{cluster.name}",
                RayClusterArgs(
                    settings=cluster,
                    pools=args.pools,
                    namespace=args.namespace,
                    service_account=deployer.service_account,
                    priorities=args.priorities,
                    operator_namespace=args.operator_namespace,
                    context=args.context,
                    import_id=f"{settings.namespace_name}/{cluster.name}" if cluster.adopt else None,
                ),
                pulumi.ResourceOptions(parent=self, depends_on=[args.operator, args.priority_classes, deployer]),
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
