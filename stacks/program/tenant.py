"""A tenant's components: what its RayClusters need, these themselves, and a guard of them all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import Cluster
from components.dynamic.guards import TenantGuard, TenantGuardArgs
from components.dynamic.reached import Reached
from components.external_cluster.component import (
    ExternalRayCluster,
    ExternalRayClusterArgs,
    SubmittedJob,
    SubmittedJobArgs,
)
from components.external_cluster.settings import ExternalClusterSettings
from components.groups import ObjectsArgs, create_part
from components.job_template.component import JobTemplates, JobTemplatesArgs
from components.kubernetes import dependencies
from components.objects import Part
from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.component import RayJob, RayJobArgs
from components.ray_job.settings import RayJobSettings
from components.ray_service.component import RayService, RayServiceArgs
from components.ray_service.settings import RayServiceSettings
from components.state import whole
from stacks.objects.queues import scheduling_of
from stacks.objects.ray_clusters import external_cluster, with_tenant_defaults
from stacks.objects.tenant import prerequisites, programs, workloads
from stacks.program.facts import Facts
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class TenantArgs:
    stack: StackSettings

    tenant: TenantSettings
    """One of the stack's."""

    namespace: pulumi.Input[str]
    """The tenant's namespace; everything waits for this output."""

    facts: Facts
    """What was read of the live cluster."""

    cluster: Cluster

    service_account: pulumi.Input[str | None] = None
    """Account of the RayClusters that set none. Default: the one of the tenant's settings."""

    @property
    def namespaces(self) -> dict[str, pulumi.Input[str]]:
        return {self.tenant.namespace_name: self.namespace}


class _Workloads(pulumi.ComponentResource):
    """A component with a tenant's RayClusters, RayJobs and RayServices directly below it: another component for them
    would be a row of the state for each tenant.

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
        super().__init__(f"ray-platform:index:{type(self).__name__}", name, None, opts)
        self._name, self._args = name, args
        self._needed = dependencies(opts)

    def _workloads(self) -> list[pulumi.ComponentResource]:
        """Creates them, after what is needed."""
        self._parts: dict[str | None, dict[str, Part]] = {}
        for part in workloads(self._args.stack, self._args.tenant):
            self._parts.setdefault(part.kind, {})[part.name] = part
        tenant = self._args.tenant
        clusters = {each.name: self._cluster(each) for each in tenant.clusters}
        external = {each.name: self._external(each) for each in tenant.external_clusters}
        summaries = {name: _summary(each) for name, each in clusters.items()}
        summaries |= {name: each.summary for name, each in external.items()}
        self.clusters = {self._key(name): summary for name, summary in summaries.items()}
        jobs = [
            self._submitted(each, external) if each.external_cluster else self._job(each, clusters)
            for each in tenant.jobs
        ]
        self.jobs = {self._key(each.name): _reached(made) for each, made in zip(tenant.jobs, jobs, strict=True)}
        services = [self._service(each) for each in tenant.services]
        self.services = {
            self._key(each.name): _reached(made) for each, made in zip(tenant.services, services, strict=True)
        }
        return [*clusters.values(), *external.values(), *jobs, *services]

    def _key(self, name: str) -> str:
        """`<namespace>/<name>`, the key in a stack's outputs."""
        return f"{self._args.tenant.namespace_name}/{name}"

    def _options(self, *after: pulumi.ComponentResource | None) -> pulumi.ResourceOptions:
        needed = [*self._needed, *(whole(each) for each in after if each)]
        return pulumi.ResourceOptions(parent=self, depends_on=needed)

    def _cluster(self, cluster: RayClusterSettings) -> RayCluster:
        args, name = self._args, cluster.name
        own = RayClusterArgs(
            settings=with_tenant_defaults(args.tenant, cluster),
            objects=self._parts["RayCluster"][name].objects,
            namespace=args.namespace,
            pools=args.stack.nodes,
            service_account=args.service_account,
            operator_namespace=args.stack.operator.namespace,
            cluster=args.cluster,
            scheduling=scheduling_of(args.stack, args.tenant, cluster),
            scaled=args.facts.scaled.get((args.tenant.namespace_name, name)),
            import_id=self._key(name) if cluster.adopt else None,
        )
        # Neither part contains a slash, so the name is unique.
        return RayCluster(f"{self._name}/{name}", own, self._options())

    def _external(self, settings: ExternalClusterSettings) -> ExternalRayCluster:
        args, name = self._args, settings.name
        own = ExternalRayClusterArgs(
            settings=settings,
            objects=self._parts["ExternalRayCluster"][name].objects,
            namespace=args.namespace,
            namespace_name=args.tenant.namespace_name,
            cluster=args.cluster,
        )
        return ExternalRayCluster(f"{self._name}/{name}", own, self._options())

    def _job(self, job: RayJobSettings, clusters: Mapping[str, RayCluster]) -> RayJob:
        args, name, cluster = self._args, job.name, job.own_cluster
        scheduling = scheduling_of(args.stack, args.tenant, cluster) if cluster else None
        own = RayJobArgs(
            settings=job,
            objects=self._parts["RayJob"][name].objects,
            namespace=args.namespace,
            operator_namespace=args.stack.operator.namespace,
            cluster=args.cluster,
            queued=bool(scheduling and scheduling.in_kueue),
        )
        selected = clusters.get(job.cluster_selector.cluster) if job.cluster_selector else None
        return RayJob(f"{self._name}/{name}", own, self._options(selected))

    def _submitted(self, job: RayJobSettings, external: Mapping[str, ExternalRayCluster]) -> SubmittedJob:
        """A job on an external cluster, submitted once its connection has been checked."""
        args, name = self._args, job.name
        settings = external_cluster(args.tenant, job)
        assert settings is not None
        cluster = external[settings.name]
        own = SubmittedJobArgs(
            settings=job,
            objects=self._parts["SubmittedJob"][name].objects,
            cluster=settings,
            namespace=args.namespace,
            connected=cluster.state,
            session=args.cluster,
        )
        return SubmittedJob(f"{self._name}/{name}", own, self._options(cluster))

    def _service(self, settings: RayServiceSettings) -> RayService:
        args, name = self._args, settings.name
        own = RayServiceArgs(
            settings=settings,
            objects=self._parts["RayService"][name].objects,
            namespace=args.namespace,
            operator_namespace=args.stack.operator.namespace,
            cluster=args.cluster,
            queued=scheduling_of(args.stack, args.tenant, settings.own_cluster).in_kueue,
            live=args.facts.scaled.get((args.tenant.namespace_name, name)),
        )
        return RayService(f"{self._name}/{name}", own, self._options())


class Tenant(_Workloads):
    """A tenant's RayClusters, the rights of people on them, the accounts that they run as, and their limits.

    RayClusters wait for everything else, and for the component's dependencies (`depends_on`), such as the operator. The
    guard waits for all of it: it is deleted first, and if it refuses, the rest stays.
    """

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
        settings, platform = args.tenant, self._needed
        around: list[pulumi.Resource] = []
        for part in prerequisites(args.stack, args.tenant):
            # The pods of job templates mount ConfigMaps of parts before.
            around.append(self._group(part, [*platform, *map(whole, around)] if part.after_platform else []))
        self._needed = needed = [*platform, *map(whole, around)]
        last: list[pulumi.Resource] = [*self._workloads()]
        ran = [whole(each, Reached) for each in last]
        for part in programs(args.stack, args.tenant):
            # A volume that cannot be mounted must not keep RayClusters from starting. The update waits until Kubernetes
            # counts objects of a kind, and RayClusters do not.
            last.append(self._group(part, ran if part.name in ("idle-termination", "object-counts") else needed))
        TenantGuard(
            f"{name}/guard",
            TenantGuardArgs(
                settings.name,
                args.namespace,
                settings.allow_delete,
                args.cluster.connection,
                tuple(each.name for each in settings.storage if each.retained and settings.create_namespace),
            ),
            # It guards RayClusters that do not become ready, too.
            pulumi.ResourceOptions(parent=self, depends_on=[*needed, *(whole(each, Reached) for each in last)]),
        )

    def _group(self, part: Part, after: Iterable[Any]) -> pulumi.Resource:
        args, name = self._args, f"{self._name}/{part.name}"
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(after))
        if part.kind == "JobTemplates":
            templates = JobTemplatesArgs(
                part.objects, args.namespace, args.tenant.job_templates, args.cluster, args.namespaces
            )
            return JobTemplates(name, templates, opts)
        return create_part(name, part, ObjectsArgs(part.objects, args.namespaces), opts)


class TenantClusters(_Workloads):
    """A tenant's RayClusters, RayJobs and RayServices: all that a stack creates on the platform of another stack."""

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
        self._workloads()


def _reached(resource: RayJob | SubmittedJob | RayService) -> pulumi.Output[dict[str, Any]]:
    """Where it is, and the status that the update has waited for."""
    return pulumi.Output.all(resource.connection, resource.status).apply(
        lambda known: {**known[0], **({"status": known[1]} if known[1] else {})}
    )


def _summary(cluster: RayCluster) -> pulumi.Output[dict[str, Any]]:
    return pulumi.Output.all(cluster.connection, cluster.status, cluster.storage_namespace).apply(
        lambda known: {
            **known[0],
            "state": known[1]["state"],
            "status": known[1],
            "largestGpus": cluster.largest_gpus,
            "workerGroups": cluster.worker_groups,
            **({"storageNamespace": known[2]} if known[2] else {}),
        }
    )
