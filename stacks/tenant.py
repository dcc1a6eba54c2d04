"""A tenant's objects: access of people, accounts of pods, policies, a quota, RayClusters, and a guard of them all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from components.access.component import RayDeployer, RayDeployerArgs, TenantAccess, TenantAccessArgs
from components.access.personas import NamedCluster, Subject
from components.network.component import NetworkPolicies, NetworkPoliciesArgs
from components.network.manifests import Body
from components.priority_classes.settings import PriorityNames
from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.scaled import Scaled, UnknownScaleError, read_scaled
from components.ray_cluster.scheduling import NO_SCHEDULING, Scheduling
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.component import RayJob, RayJobArgs
from components.state import whole
from components.storage.component import Storage, StorageArgs
from components.tenant.component import Quota, QuotaArgs
from components.tenant.guard import TenantGuard, TenantGuardArgs
from components.tenant.settings import counted
from core.nodes import NodePool

from .access import admins_of, own_accounts
from .rendered import with_tenant_defaults
from .settings import TenantSettings
from .storage import uses


@dataclass(frozen=True)
class TenantClustersArgs:
    """Arguments of TenantClusters."""

    settings: TenantSettings
    pools: tuple[NodePool, ...]

    namespace: pulumi.Input[str]
    """The tenant's namespace; everything waits for this output."""

    priorities: PriorityNames
    operator_namespace: str

    service_account: pulumi.Input[str | None] = None
    """Account of the RayClusters that set none. Default: the one of the tenant's settings."""

    context: str | None = None

    redis: RedisPlace | None = None
    """Where the GCS of its RayClusters may store its tables; None: they have no Redis."""

    scheduling: Mapping[str, Scheduling] = field(default_factory=dict)
    """The scheduler and queue of each RayCluster, by name. Default: Kubernetes' own scheduler."""

    jobs: Mapping[str, Body] = field(default_factory=dict)
    """The bodies of its RayJobs, by name (rendered.rendered_job)."""

    last: Mapping[str, Any] = field(default_factory=dict)
    """The stack's RayClusters by `<namespace>/<name>`, as its last update exported them (_summary)."""

    last_jobs: Mapping[str, Any] = field(default_factory=dict)
    """Its RayJobs in the same way."""


@dataclass(frozen=True)
class TenantArgs:
    """Arguments of Tenant."""

    clusters: TenantClustersArgs
    """The tenant and its RayClusters."""

    named: tuple[NamedCluster, ...]
    """Its RayClusters, as the access of people and the accounts of pods name them."""

    cluster_admins: tuple[Subject, ...] = ()

    policies: Sequence[Body] = ()
    """NetworkPolicies of the namespace."""


class Tenant(pulumi.ComponentResource):
    """A tenant's RayClusters, the rights of people on them, the accounts that they run as, and their limits.

    RayClusters wait for everything else, and for the component's dependencies (`depends_on`), such as the operator. The
    guard waits for all of it: it is deleted first, and if it refuses, the rest stays.

    Outputs:
        clusters: of each RayCluster, by `<namespace>/<name>`, where it is, its worker groups, its state and status.
        jobs: of each RayJob, by `<namespace>/<name>`, where it is, and the status that `up` has waited for.
    """

    clusters: dict[str, Any]
    jobs: dict[str, Any]

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Tenant", name, None, opts)
        settings, namespace = args.clusters.settings, args.clusters.namespace
        after = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        waits = pulumi.ResourceOptions.merge(
            after,
            pulumi.ResourceOptions(parent=self, depends_on=[whole(part) for part in self._around(name, args, after)]),
        )
        clusters = TenantClusters(name, args.clusters, waits)
        TenantGuard(
            f"{name}/guard",
            TenantGuardArgs(
                settings.name,
                namespace,
                settings.allow_delete,
                args.clusters.context,
                tuple(each.name for each in settings.storage if each.retained and settings.create_namespace),
            ),
            pulumi.ResourceOptions.merge(waits, pulumi.ResourceOptions(depends_on=[whole(clusters)])),
        )
        self.clusters, self.jobs = clusters.clusters, clusters.jobs
        self.register_outputs({})

    def _around(self, name: str, args: TenantArgs, after: pulumi.ResourceOptions) -> list[pulumi.ComponentResource]:
        """What RayClusters need in the namespace, and what limits them. `after`: options of what needs KubeRay's
        CRDs."""
        settings, namespace = args.clusters.settings, args.clusters.namespace
        below = pulumi.ResourceOptions(parent=self)
        access = TenantAccess(
            f"{name}/access",
            TenantAccessArgs(
                namespace=namespace,
                namespace_name=settings.namespace_name,
                admins=admins_of(args.cluster_admins, settings),
                users=settings.users,
                clusters=args.named,
                accounts=own_accounts(settings),
                ingresses=settings.network.ingress,
            ),
            below,
        )
        policies = NetworkPolicies(f"{name}/network", NetworkPoliciesArgs(args.policies, namespace), below)
        counts = settings.quota is not None and bool(counted(settings.quota))
        quota = Quota(
            f"{name}/quota",
            QuotaArgs(namespace, settings.quota, settings.limits_in_force),
            pulumi.ResourceOptions.merge(below, after) if counts else below,
        )
        around: list[pulumi.ComponentResource] = [access, policies, quota]
        if settings.storage:
            storage = StorageArgs(
                settings.storage, namespace, settings.namespace_name, uses(settings), args.clusters.context
            )
            around.append(Storage(f"{name}/storage", storage, below))
        if settings.ray_deployer:
            deployer = RayDeployerArgs(settings.ray_deployer, namespace)
            around.append(RayDeployer(f"{name}/ray-deployer", deployer, below))
        return around


class TenantClusters(pulumi.ComponentResource):
    """A tenant's RayClusters and RayJobs: all that a stack creates on the platform of another stack.

    Outputs:
        clusters, jobs: as those of Tenant.
    """

    clusters: dict[str, Any]
    jobs: dict[str, Any]

    def __init__(self, name: str, args: TenantClustersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:TenantClusters", name, None, opts)
        settings = args.settings
        made = {
            cluster.name: RayCluster(
                # Neither part contains a slash, so the name is unique.
                f"{name}/{cluster.name}",
                RayClusterArgs(
                    settings=with_tenant_defaults(settings, cluster),
                    pools=args.pools,
                    namespace=args.namespace,
                    service_account=settings.service_account(cluster) or args.service_account,
                    priorities=args.priorities,
                    operator_namespace=args.operator_namespace,
                    context=args.context,
                    redis=args.redis,
                    scheduling=args.scheduling.get(cluster.name, NO_SCHEDULING),
                    scaled=_scaled(args.context, settings.namespace_name, cluster),
                    import_id=f"{settings.namespace_name}/{cluster.name}" if cluster.adopt else None,
                    last_status=args.last.get(f"{settings.namespace_name}/{cluster.name}", {}).get("status"),
                ),
                pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None),
            )
            for cluster in settings.clusters
        }
        self.clusters = {
            f"{settings.namespace_name}/{cluster}": _summary(resource) for cluster, resource in made.items()
        }
        self.jobs = {
            f"{settings.namespace_name}/{job}": pulumi.Output.all(resource.connection, resource.status).apply(
                lambda known: {**known[0], **({"status": known[1]} if known[1] else {})}
            )
            for job, resource in self._jobs(name, args, made, opts).items()
        }
        self.register_outputs({})

    def _jobs(
        self,
        name: str,
        args: TenantClustersArgs,
        clusters: Mapping[str, RayCluster],
        opts: pulumi.ResourceOptions | None,
    ) -> dict[str, RayJob]:
        after = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        made = {}
        for job in args.settings.jobs:
            selected = clusters.get(job.cluster_selector.cluster) if job.cluster_selector else None
            scheduling = args.scheduling.get(job.name, NO_SCHEDULING)
            made[job.name] = RayJob(
                f"{name}/{job.name}",
                RayJobArgs(
                    settings=job,
                    body=args.jobs[job.name],
                    namespace=args.namespace,
                    operator_namespace=args.operator_namespace,
                    context=args.context,
                    queued=scheduling.backend == "kueue" and scheduling.queue is not None,
                    last_status=args.last_jobs.get(f"{args.settings.namespace_name}/{job.name}", {}).get("status"),
                ),
                pulumi.ResourceOptions.merge(
                    after, pulumi.ResourceOptions(depends_on=[whole(selected)] if selected else [])
                ),
            )
        return made


def _scaled(context: str | None, namespace: str, cluster: RayClusterSettings) -> Scaled | None:
    try:
        return read_scaled(context, namespace, cluster.name)
    except UnknownScaleError as error:
        if not cluster.scales:
            return None
        raise pulumi.RunError(str(error)) from error


def _summary(cluster: RayCluster) -> pulumi.Output[dict[str, Any]]:
    return pulumi.Output.all(cluster.connection, cluster.status, cluster.storage_namespace).apply(
        lambda known: {
            **known[0],
            "state": known[1]["state"],
            "status": known[1],
            "greatestGpus": cluster.greatest_gpus,
            "workerGroups": cluster.worker_groups,
            **({"storageNamespace": known[2]} if known[2] else {}),
        }
    )
