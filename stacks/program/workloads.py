"""The resources of a tenant's jobs, services and external clusters."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import Cluster
from components.external_cluster.component import (
    ExternalRayCluster,
    ExternalRayClusterArgs,
    SubmittedJob,
    SubmittedJobArgs,
)
from components.network.manifests import Body
from components.ray_cluster.component import RayCluster
from components.ray_job.component import RayJob, RayJobArgs
from components.ray_service.component import RayService, RayServiceArgs
from components.state import whole
from stacks.objects.ray_clusters import external_cluster
from stacks.settings import TenantSettings

Reached = RayJob | SubmittedJob | RayService
"""What `up` may wait for, and has a status for."""


@dataclass(frozen=True)
class Tenancy:
    """What all resources of a tenant have in common."""

    name: str
    """Prefix of their names."""

    settings: TenantSettings
    namespace: pulumi.Input[str]
    operator_namespace: str
    cluster: Cluster

    options: pulumi.ResourceOptions
    """With their parent, and what they wait for."""

    def named(self, name: str) -> str:
        """`<namespace>/<name>`, the key in a stack's outputs."""
        return f"{self.settings.namespace_name}/{name}"


def reached(resource: Reached) -> pulumi.Output[dict[str, Any]]:
    """Where it is, and the status that the update has waited for."""
    return pulumi.Output.all(resource.connection, resource.status).apply(
        lambda known: {**known[0], **({"status": known[1]} if known[1] else {})}
    )


def ray_jobs(
    tenancy: Tenancy,
    clusters: Mapping[str, RayCluster],
    bodies: Mapping[str, Body],
    last: Mapping[str, Any],
    queued: Collection[str],
) -> dict[str, RayJob]:
    """The tenant's RayJobs, by name, each after the RayCluster that it selects. `bodies`: of all jobs, by name; `last`:
    the stack's output `jobs` after the last update; `queued`: names of those that Kueue may suspend."""
    made = {}
    for job in tenancy.settings.jobs:
        if job.external_cluster:
            continue
        selected = clusters.get(job.cluster_selector.cluster) if job.cluster_selector else None
        args = RayJobArgs(
            settings=job,
            body=bodies[job.name],
            namespace=tenancy.namespace,
            operator_namespace=tenancy.operator_namespace,
            cluster=tenancy.cluster,
            queued=job.name in queued,
            last_status=last.get(tenancy.named(job.name), {}).get("status"),
        )
        after = pulumi.ResourceOptions(depends_on=[whole(selected)] if selected else [])
        options = pulumi.ResourceOptions.merge(tenancy.options, after)
        made[job.name] = RayJob(f"{tenancy.name}/{job.name}", args, options)
    return made


def ray_services(tenancy: Tenancy, bodies: Mapping[str, Body], last: Mapping[str, Any]) -> dict[str, RayService]:
    """The tenant's RayServices, by name. `bodies`: by name; `last`: the stack's output `services` after the last
    update."""
    return {
        service.name: RayService(
            f"{tenancy.name}/{service.name}",
            RayServiceArgs(
                settings=service,
                body=bodies[service.name],
                namespace=tenancy.namespace,
                operator_namespace=tenancy.operator_namespace,
                cluster=tenancy.cluster,
                last_status=last.get(tenancy.named(service.name), {}).get("status"),
            ),
            tenancy.options,
        )
        for service in tenancy.settings.services
    }


def external_clusters(
    tenancy: Tenancy, checks: Mapping[str, Body], last: Mapping[str, Any]
) -> dict[str, ExternalRayCluster]:
    """The tenant's external clusters, by name. `checks`: the Jobs that check their connections, by name; `last`: the
    stack's output `clusters` after the last update."""
    settings = tenancy.settings
    return {
        each.name: ExternalRayCluster(
            f"{tenancy.name}/{each.name}",
            ExternalRayClusterArgs(
                settings=each,
                body=checks[each.name],
                namespace=tenancy.namespace,
                namespace_name=settings.namespace_name,
                cluster=tenancy.cluster,
                last=last.get(tenancy.named(each.name)),
            ),
            tenancy.options,
        )
        for each in settings.external_clusters
    }


def submitted_jobs(
    tenancy: Tenancy, clusters: Mapping[str, ExternalRayCluster], bodies: Mapping[str, Body], last: Mapping[str, Any]
) -> dict[str, SubmittedJob]:
    """The tenant's jobs on external clusters, by name, each submitted once its cluster is connected. `bodies`: of all
    jobs, by name; `last`: the stack's output `jobs` after the last update."""
    made = {}
    for job in tenancy.settings.jobs:
        if external := external_cluster(tenancy.settings, job):
            cluster = clusters[external.name]
            args = SubmittedJobArgs(
                settings=job,
                body=bodies[job.name],
                cluster=external,
                namespace=tenancy.namespace,
                connected=cluster.state,
                session=tenancy.cluster,
                last_status=last.get(tenancy.named(job.name), {}).get("status"),
            )
            after = pulumi.ResourceOptions(depends_on=[whole(cluster)])
            options = pulumi.ResourceOptions.merge(tenancy.options, after)
            made[job.name] = SubmittedJob(f"{tenancy.name}/{job.name}", args, options)
    return made
