"""A tenant's objects: access of people, accounts of pods, policies, a quota, RayClusters, and a guard of them all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from components.access.component import RayDeployer, RayDeployerArgs, TenantAccess, TenantAccessArgs
from components.access.personas import NamedCluster, Subject
from components.cluster import Cluster
from components.idle_termination.component import IdleTermination, IdleTerminationArgs
from components.job_template.component import JobTemplates, JobTemplatesArgs
from components.kubernetes_cluster import KubernetesCluster
from components.logs.component import LogCollectors, LogCollectorsArgs
from components.logs.settings import LogsSettings
from components.network.component import NetworkPolicies, NetworkPoliciesArgs
from components.network.manifests import Body
from components.priority_classes.settings import PriorityNames
from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.scaled import Scaled, UnknownScaleError, read_scaled
from components.ray_cluster.scheduling import NO_SCHEDULING, Scheduling
from components.ray_cluster.settings import RayClusterSettings
from components.run_history.component import RunHistory, RunHistoryArgs
from components.state import whole
from components.storage.component import Storage, StorageArgs
from components.tenant.component import Quota, QuotaArgs
from components.tenant.guard import TenantGuard, TenantGuardArgs
from components.tenant.settings import counted
from core.nodes import NodePool
from stacks.checks.storage import uses
from stacks.objects.access import admins_of, own_accounts
from stacks.objects.ray_clusters import with_tenant_defaults
from stacks.program.workloads import (
    Reached,
    Tenancy,
    external_clusters,
    ray_jobs,
    ray_services,
    reached,
    submitted_jobs,
)
from stacks.settings import TenantSettings


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

    cluster: Cluster = field(default_factory=KubernetesCluster)

    redis: RedisPlace | None = None
    """Where the GCS of its RayClusters may store its tables; None: they have no Redis."""

    scheduling: Mapping[str, Scheduling] = field(default_factory=dict)
    """The scheduler and queue of each RayCluster, by name. Default: Kubernetes' own scheduler."""

    logs: LogsSettings | None = None
    """Where the logs of its pods go; None: they stay in the pods."""

    jobs: Mapping[str, Body] = field(default_factory=dict)
    """The bodies of its RayJobs, by name (rendered.rendered_job)."""

    checks: Mapping[str, Body] = field(default_factory=dict)
    """The Jobs that check the connections of its external clusters, by name (external.checks)."""

    services: Mapping[str, Body] = field(default_factory=dict)
    """The bodies of its RayServices, by name (rendered.rendered_service)."""

    last: Mapping[str, Any] = field(default_factory=dict)
    """The stack's RayClusters by `<namespace>/<name>`, as its last update exported them (_summary)."""

    last_jobs: Mapping[str, Any] = field(default_factory=dict)
    """Its RayJobs in the same way."""

    last_services: Mapping[str, Any] = field(default_factory=dict)
    """Its RayServices in the same way."""


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

    templates: Mapping[str, Body] = field(default_factory=dict)
    """The objects of its job templates, by the names of their resources (rendered.template_objects)."""

    log_collectors: Body | None = None
    """The configuration of the collectors of its logs (logs.log_collectors)."""

    idle_termination: Mapping[str, Body] = field(default_factory=dict)
    """What suspends its idle RayClusters, by part (idle_termination.idle_termination)."""

    run_history: Mapping[str, Body] = field(default_factory=dict)
    """What keeps records of its RayJobs, by part (run_history.run_history)."""


class Tenant(pulumi.ComponentResource):
    """A tenant's RayClusters, the rights of people on them, the accounts that they run as, and their limits.

    RayClusters wait for everything else, and for the component's dependencies (`depends_on`), such as the operator. The
    guard waits for all of it: it is deleted first, and if it refuses, the rest stays.

    Outputs:
        clusters: of each RayCluster and external cluster, by `<namespace>/<name>`, where it is, its worker groups, its
            state and status.
        jobs: of each job, by `<namespace>/<name>`, where it is, and the status that `up` has waited for.
        services: of each RayService in the same way, with the endpoint of its applications.
    """

    clusters: dict[str, Any]
    jobs: dict[str, Any]
    services: dict[str, Any]

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Tenant", name, None, opts)
        settings, namespace = args.clusters.settings, args.clusters.namespace
        after = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        waits = pulumi.ResourceOptions.merge(
            after,
            pulumi.ResourceOptions(parent=self, depends_on=[whole(part) for part in self._around(name, args, after)]),
        )
        clusters = TenantClusters(name, args.clusters, waits)
        last: list[pulumi.ComponentResource] = [clusters]
        if args.idle_termination:
            idle = IdleTerminationArgs(args.idle_termination, namespace)
            after_clusters = pulumi.ResourceOptions(parent=self, depends_on=[whole(clusters)])
            last.append(IdleTermination(f"{name}/idle-termination", idle, after_clusters))
        if args.run_history:
            # Beside the RayClusters: a volume that cannot be mounted must not keep them from starting.
            last.append(RunHistory(f"{name}/run-history", RunHistoryArgs(args.run_history, namespace), waits))
        TenantGuard(
            f"{name}/guard",
            TenantGuardArgs(
                settings.name,
                namespace,
                settings.allow_delete,
                args.clusters.cluster.connection,
                tuple(each.name for each in settings.storage if each.retained and settings.create_namespace),
            ),
            pulumi.ResourceOptions.merge(waits, pulumi.ResourceOptions(depends_on=[whole(part) for part in last])),
        )
        self.clusters, self.jobs, self.services = clusters.clusters, clusters.jobs, clusters.services
        self.register_outputs({})

    def _around(self, name: str, args: TenantArgs, after: pulumi.ResourceOptions) -> list[pulumi.ComponentResource]:
        """What RayClusters need in the namespace, and what limits them. `after`: options of what needs KubeRay's CRDs,
        or the admission policies."""
        settings, namespace = args.clusters.settings, args.clusters.namespace
        below = pulumi.ResourceOptions(parent=self)
        below_and_after = pulumi.ResourceOptions.merge(below, after)
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
                templates=tuple(each.name for each in settings.job_templates),
            ),
            below_and_after if settings.job_templates else below,
        )
        policies = NetworkPolicies(f"{name}/network", NetworkPoliciesArgs(args.policies, namespace), below)
        counts = settings.quota is not None and bool(counted(settings.quota))
        quota = Quota(
            f"{name}/quota",
            QuotaArgs(namespace, settings.quota, settings.limits_in_force),
            below_and_after if counts else below,
        )
        around: list[pulumi.ComponentResource] = [access, policies, quota]
        if settings.storage:
            storage = StorageArgs(
                settings.storage, namespace, settings.namespace_name, uses(settings), args.clusters.cluster
            )
            around.append(Storage(f"{name}/storage", storage, below))
        if args.templates:
            templates = JobTemplatesArgs(args.templates, namespace, settings.job_templates, args.clusters.cluster)
            around.append(JobTemplates(f"{name}/job-templates", templates, below_and_after))
        if args.log_collectors:
            collectors = LogCollectorsArgs(args.log_collectors, namespace)
            around.append(LogCollectors(f"{name}/logs", collectors, below))
        if settings.ray_deployer:
            deployer = RayDeployerArgs(settings.ray_deployer, namespace)
            around.append(RayDeployer(f"{name}/ray-deployer", deployer, below))
        return around


class TenantClusters(pulumi.ComponentResource):
    """A tenant's RayClusters, RayJobs and RayServices: all that a stack creates on the platform of another stack.

    Outputs:
        clusters, jobs, services: as those of Tenant.
    """

    clusters: dict[str, Any]
    jobs: dict[str, Any]
    services: dict[str, Any]

    def __init__(self, name: str, args: TenantClustersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:TenantClusters", name, None, opts)
        settings = args.settings
        below = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        tenancy = Tenancy(name, settings, args.namespace, args.operator_namespace, args.cluster, below)
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
                    cluster=args.cluster,
                    redis=args.redis,
                    scheduling=args.scheduling.get(cluster.name, NO_SCHEDULING),
                    logs=args.logs,
                    scaled=_scaled(args.cluster, settings.namespace_name, cluster),
                    import_id=tenancy.named(cluster.name) if cluster.adopt else None,
                    last_status=args.last.get(tenancy.named(cluster.name), {}).get("status"),
                ),
                below,
            )
            for cluster in settings.clusters
        }
        external = external_clusters(tenancy, args.checks, args.last)
        summaries = {cluster: _summary(resource) for cluster, resource in made.items()}
        summaries |= {cluster: resource.summary for cluster, resource in external.items()}
        self.clusters = {tenancy.named(cluster): summary for cluster, summary in summaries.items()}
        queued = {name for name, each in args.scheduling.items() if each.backend == "kueue" and each.queue is not None}
        jobs: dict[str, Reached] = {
            **ray_jobs(tenancy, made, args.jobs, args.last_jobs, queued),
            **submitted_jobs(tenancy, external, args.jobs, args.last_jobs),
        }
        self.jobs = {tenancy.named(job): reached(resource) for job, resource in jobs.items()}
        services = ray_services(tenancy, args.services, args.last_services)
        self.services = {tenancy.named(service): reached(resource) for service, resource in services.items()}
        self.register_outputs({})


def _scaled(cluster: Cluster, namespace: str, settings: RayClusterSettings) -> Scaled | None:
    try:
        return read_scaled(cluster, namespace, settings.name)
    except UnknownScaleError as error:
        if not settings.scales:
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
