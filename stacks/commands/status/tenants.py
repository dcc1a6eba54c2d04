"""The status of a stack: its tenants with everything in their namespaces, and its queues. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from components.queues.settings import Backend, children
from stacks.commands.status.budgets import QueueStatus, QuotaStatus, queue_statuses, quota_status
from stacks.commands.status.clusters import ClusterStatus, Gpus, cluster_status, missing
from stacks.commands.status.cml import CmlStatus
from stacks.commands.status.external_ray import ExternalStatus, external_status, submitted_status
from stacks.commands.status.owners import (
    JobStatus,
    ServiceStatus,
    job_status,
    missing_job,
    missing_service,
    service_status,
)
from stacks.commands.status.platform import Problem, problems
from stacks.commands.status.snapshot import Found, Live, Usage
from stacks.objects.queues import queue_of, queues_of
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class TenantStatus:
    """The status of a tenant: what exists in its namespace, and what should exist there."""

    name: str
    namespace: str
    clusters: tuple[ClusterStatus, ...]
    """Those of the stack file in its order, then all others."""
    jobs: tuple[JobStatus, ...]
    """In the same order."""
    services: tuple[ServiceStatus, ...]
    quotas: tuple[QuotaStatus, ...]
    external: tuple[ExternalStatus, ...] = ()
    """The external clusters of the stack file."""
    usage: Usage | None = None
    """None: the stack has no Prometheus that answers this account."""

    @property
    def ok(self) -> bool:
        clusters, jobs = (each.ok for each in self.clusters), (each.ok for each in self.jobs)
        external, services = (each.ok for each in self.external), (each.ok for each in self.services)
        return all((*clusters, *external, *jobs, *services))

    @property
    def gpus(self) -> Gpus:
        """Those of its RayClusters. Its quota limits what they can grow to."""
        limits = [int(each.hard["gpus"]) for each in self.quotas if "gpus" in each.hard]
        summed = _summed(each.gpus for each in self.clusters)
        return replace(summed, most=_least([summed.most, *limits]))


@dataclass(frozen=True)
class Unreadable:
    """What this account could not read."""

    namespace: str | None
    """None: objects without a namespace."""
    kinds: tuple[str, ...]
    """Plurals of the kinds."""
    reason: str
    """The API server's reason for the first of them."""


@dataclass(frozen=True)
class StackStatus:
    """The status of a stack, or of one of its tenants."""

    live: Live
    tenants: tuple[TenantStatus, ...]
    queues: tuple[QueueStatus, ...]
    unreadable: tuple[Unreadable, ...]
    nodes: int | None
    """GPUs of the nodes in the stack file; None if it has none, or one tenant alone is shown."""
    cml: tuple[CmlStatus, ...] = ()
    """The clusters on Cloudera ML."""

    remote_jobs: tuple[tuple[str, str], ...] = ()
    """The jobs that `up` submits to clusters outside Kubernetes, each with its cluster. Their state is not read."""

    platform: tuple[Problem, ...] = ()
    """What does not run of operator, scheduler, webhook, Prometheus and Redis, as far as this account may read it."""

    @property
    def ok(self) -> bool:
        """Whether everything that could be read is as desired, and all RayClusters could be read."""
        unknown = any("rayclusters" in each.kinds for each in self.unreadable)
        return (
            not unknown
            and not self.platform
            and all(each.ok for each in self.tenants)
            and all(each.ok for each in self.queues)
            and all(each.ok for each in self.cml)
        )

    @property
    def clusters(self) -> Sequence[ClusterStatus]:
        return [each for tenant in self.tenants for each in tenant.clusters]

    @property
    def gpus(self) -> Gpus:
        """Those of all tenants. The nodes limit what they can grow to."""
        summed = _summed(tenant.gpus for tenant in self.tenants)
        return replace(summed, most=_least([summed.most, self.nodes]))


def stack_status(
    stack: StackSettings, tenants: Sequence[TenantSettings], live: Live, cml: Iterable[CmlStatus] = ()
) -> StackStatus:
    """The status of these tenants of the stack. `cml`: its clusters on Cloudera ML."""
    backend = stack.scheduler.backend if stack.scheduler else None
    queues: Sequence[QueueStatus] = ()
    if backend:
        names = queue_names(stack, tenants, backend)
        queues = queue_statuses(names, backend, live.shared, live.namespaces.values())
    nodes = sum(pool.gpus * pool.count for pool in stack.nodes) if stack.nodes else None
    return StackStatus(
        live,
        tuple(
            _tenant_status(tenant, live.namespaces[tenant.namespace_name], live, backend, nodes) for tenant in tenants
        ),
        tuple(queues),
        tuple(_unreadable(live)),
        nodes if len(tenants) == len(stack.tenants) else None,
        tuple(cml),
        tuple((each.name, each.cluster) for each in stack.jobs if len(tenants) == len(stack.tenants)),
        tuple(problems(stack, live)),
    )


def queue_names(stack: StackSettings, tenants: Sequence[TenantSettings], backend: Backend) -> list[str]:
    """The queues of the stack; of some of its tenants, those that they use. Kueue's parents are not queues."""
    below = children(queues_of(stack))
    own = [each.name for each in queues_of(stack) if backend == "volcano" or not below[each.name]]
    used = [queue_of(tenant, cluster) for tenant in tenants for cluster in tenant.all_clusters or (None,)]
    default = "default" if backend == "volcano" else None
    of_tenants = [name for each in used if (name := each or default)]
    return list(dict.fromkeys([*(own if len(tenants) == len(stack.tenants) else ()), *of_tenants]))


def _tenant_status(
    tenant: TenantSettings, found: Found, live: Live, backend: Backend | None, nodes: int | None
) -> TenantStatus:
    quotas = tuple(quota_status(each) for each in found.all("resourcequotas"))
    limits = [nodes, *(int(each.hard["gpus"]) for each in quotas if "gpus" in each.hard)]
    clusters = [
        replace(each, gpus=replace(each.gpus, most=_least([each.gpus.most, *limits])))
        for each in _clusters(tenant, found, live, backend)
    ]
    by_name = {each.name: each for each in clusters}
    return TenantStatus(
        tenant.name,
        tenant.namespace_name,
        tuple(clusters),
        tuple(_jobs(tenant, found, live, backend, by_name)),
        tuple(_services(tenant, found, live, by_name)),
        quotas,
        tuple(external_status(each, found) for each in tenant.external_clusters),
        live.usages.get(tenant.namespace_name),
    )


def _clusters(tenant: TenantSettings, found: Found, live: Live, backend: Backend | None) -> Iterator[ClusterStatus]:
    bodies = {each["metadata"]["name"]: each for each in found.all("rayclusters")}
    for cluster in tenant.clusters:
        if body := bodies.pop(cluster.name, None):
            yield cluster_status(body, found, live, backend, in_stack_file=True)
        else:
            yield missing(cluster.name, found)
    for name, body in bodies.items():
        yield cluster_status(body, found, live, backend, in_stack_file=name in tenant.cluster_names)


def _jobs(
    tenant: TenantSettings, found: Found, live: Live, backend: Backend | None, clusters: Mapping[str, ClusterStatus]
) -> Iterator[JobStatus]:
    bodies = {each["metadata"]["name"]: each for each in found.all("rayjobs")}
    for job in tenant.jobs:
        if job.external_cluster:
            yield submitted_status(job.name, job.external_cluster, found, live)
        elif body := bodies.pop(job.name, None):
            yield replace(job_status(body, found, live, backend, clusters), in_stack_file=True)
        else:
            yield missing_job(job.name, found)
    for name, body in bodies.items():
        status = job_status(body, found, live, backend, clusters)
        yield replace(status, in_stack_file=True) if name in tenant.job_names else status


def _services(
    tenant: TenantSettings, found: Found, live: Live, clusters: Mapping[str, ClusterStatus]
) -> Iterator[ServiceStatus]:
    bodies = {each["metadata"]["name"]: each for each in found.all("rayservices")}
    for service in tenant.services:
        if body := bodies.pop(service.name, None):
            yield replace(service_status(body, found, live, clusters), in_stack_file=True)
        else:
            yield missing_service(service.name, found)
    for name, body in bodies.items():
        status = service_status(body, found, live, clusters)
        yield replace(status, in_stack_file=True) if name in tenant.service_names else status


def _unreadable(live: Live) -> Iterator[Unreadable]:
    for namespace, found in (*live.namespaces.items(), (None, live.shared)):
        if found.unreadable:
            kinds = tuple(found.unreadable)
            yield Unreadable(namespace, kinds, found.unreadable[kinds[0]])


def _summed(several: Iterable[Gpus]) -> Gpus:
    """The sum; None for a part that is None in one of them."""
    found = list(several)
    parts = [[getattr(each, part) for each in found] for part in ("held", "waiting", "most")]
    return Gpus(*(None if None in part else sum(part) for part in parts))


def _least(limits: Iterable[int | None]) -> int | None:
    return min((each for each in limits if each is not None), default=None)
