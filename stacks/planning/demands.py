"""The pods of a stack's RayClusters and Redis, and the limits of their number. Pure functions."""

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from components.capacity.limits import Account, Accounts
from components.capacity.placement import Workers
from components.idle_termination.manifests import demand_of_program
from components.queues.budget import Room
from components.ray_service.manifests import demand_of_update
from components.tenant.demand import Demand, of_stateful_set
from components.tenant.settings import hard
from core.body import ReadOnlyBody
from core.nodes import GPU_RESOURCE, NodePool, gpu_resources
from core.problems import Path
from core.quantities import amount
from kuberay.ray_start import drain_of
from stacks.objects.queues import queue_of
from stacks.objects.ray_clusters import (
    demanded,
    demanded_by_job,
    demanded_by_service,
    rendered,
    rendered_job,
    rendered_service,
)
from stacks.objects.redis import redis_parts, redis_stateful_set
from stacks.objects.tenant_programs import idle_termination, run_history
from stacks.settings import StackSettings, TenantSettings

Rooms = Mapping[str, Mapping[str, Room]]
"""By queue and resource, the most that the queue can use."""


def clusters_of(stack: StackSettings, tenant: TenantSettings) -> dict[str, list[Workers]]:
    """The pods of the tenant's RayClusters, and of those of its RayJobs and RayServices, by `<namespace>/<name>`."""
    made, namespace = {}, tenant.namespace_name
    for cluster in tenant.clusters:
        name = f"{namespace}/{cluster.name}"
        made[name] = workers_of(stack.nodes, name, rendered(stack, tenant, cluster), demanded(stack, tenant, cluster))
    for job in tenant.jobs:
        if job.own_cluster:
            name = f"{namespace}/{job.name}"
            made[name] = workers_of(
                stack.nodes, name, rendered_job(stack, tenant, job), demanded_by_job(stack, tenant, job)
            )
    for service in tenant.services:
        name, body = f"{namespace}/{service.name}", rendered_service(stack, tenant, service)
        made[name] = workers_of(stack.nodes, name, body, demanded_by_service(stack, tenant, service))
    return made


def runs_of(stack: StackSettings, tenant: TenantSettings) -> Iterator[tuple[str, str | None, list[Workers]]]:
    """The pods of one run of each job template with sizes, by the template's `<namespace>/<name>` and size. None: its
    own."""
    for template in tenant.job_templates:
        name = f"{tenant.namespace_name}/{template.name}"
        for size, job in ((None, template.job), *template.sized_jobs.items()) if template.sizes else ():
            body, needs = rendered_job(stack, tenant, job), demanded_by_job(stack, tenant, job)
            yield name, size, workers_of(stack.nodes, name, body, needs)


def updates_of(stack: StackSettings, tenant: TenantSettings) -> dict[str, list[Workers]]:
    """The pods of the second RayCluster that each of the tenant's RayServices has during an update, by its name."""
    made = {}
    for service in tenant.services:
        if service.upgrades:
            name, body = f"{tenant.namespace_name}/{service.name}", rendered_service(stack, tenant, service)
            made[name] = workers_of(
                stack.nodes, name, body, demand_of_update(demanded_by_service(stack, tenant, service), body)
            )
    return made


def redis_pods(stack: StackSettings) -> list[Workers]:
    found = []
    for part in redis_parts(stack):
        body = redis_stateful_set(stack, part)
        limits = part.tenants[0].limits_in_force if part.of_tenant else None
        found += workers_of(
            stack.nodes, f"{part.namespace}/{body['metadata']['name']}", body, of_stateful_set(body, limits)
        )
    return found


def submitters(stack: StackSettings) -> list[Workers]:
    """The pods that submit jobs to external clusters."""
    return [
        each
        for tenant in stack.tenants
        for job in tenant.jobs
        if job.external_cluster
        for each in workers_of(
            stack.nodes,
            f"{tenant.namespace_name}/{job.name}",
            rendered_job(stack, tenant, job),
            demanded_by_job(stack, tenant, job),
        )
    ]


def programs_of(stack: StackSettings, tenant: TenantSettings) -> Sequence[tuple[str, ReadOnlyBody, Demand]]:
    """The programs that run beside the tenant's RayClusters: the key that each is for, its Deployment or StatefulSet,
    and what its pod uses. Raises Problems as `rendered` does."""
    found = []
    if body := idle_termination(stack, tenant).get("deployment"):
        found.append(("idleTerminationOptions", body, demand_of_program(body, tenant.limits_in_force)))
    if body := run_history(stack, tenant).get("stateful-set"):
        # Its claim counts as storage.
        found.append(("runHistory", body, of_stateful_set(body, tenant.limits_in_force)))
    return found


def program_pods(stack: StackSettings) -> list[Workers]:
    """The pods of these programs."""
    return [
        each
        for tenant in stack.tenants
        for _, body, demand in programs_of(stack, tenant)
        for each in workers_of(stack.nodes, f"{tenant.namespace_name}/{demand.name}", body, demand)
    ]


def accounts_of(stack: StackSettings, rooms: Rooms) -> dict[str, list[Account]]:
    """The accounts that the pods of a RayCluster count in, by its name, or those of a run by its job template's: its
    tenant's quota and its queue. All start empty."""
    of_queues = {
        name: Account({resource: each.most for resource, each in room.items()}, name=f"queue {name}")
        for name, room in rooms.items()
    }
    found: dict[str, list[Account]] = {}
    for tenant in stack.tenants:
        quota = Account(_quota(tenant), name=f"the quota of {tenant.name}")
        sized = (each.job.own_cluster for each in tenant.job_templates if each.sizes)
        for cluster in (*tenant.planned_clusters, *filter(None, sized)):
            queue = of_queues.get(queue_of(tenant, cluster) or "")
            found[f"{tenant.namespace_name}/{cluster.name}"] = [quota, queue] if queue else [quota]
    return found


def fresh(accounts: Accounts, *, empty: bool = False) -> dict[str, list[Account]]:
    """Copies of these accounts, shared in the same way; with the same contents, or empty."""
    made: dict[int, Account] = {}

    def copied(account: Account) -> Account:
        return made.setdefault(id(account), replace(account, used={} if empty else dict(account.used)))

    return {name: [copied(each) for each in counted] for name, counted in accounts.items()}


def _quota(tenant: TenantSettings) -> dict[str, Decimal]:
    """The tenant's quota by the resources of the ResourceQuota."""
    return {entry: amount(most) for entry, most in hard(tenant.quota).items()} if tenant.quota else {}


def workers_of(pools: Sequence[NodePool], owner: str, body: ReadOnlyBody, demand: Demand) -> list[Workers]:
    """The pods of a RayCluster, RayJob, RayService or StatefulSet, in the order of the demand's groups."""
    found = []
    for group in demand.groups:
        template_owner, cluster = _at(body, group.path), _at(body, group.path[:-2])
        pod = template_owner.get("template", template_owner)["spec"]
        drains = "groupName" in template_owner
        found.append(
            Workers(
                owner=owner,
                group=template_owner.get("groupName") or group.title.removeprefix("the "),
                usage=group.usage,
                spec=pod,
                least=group.at_first,
                most=group.most if demand.scales else group.at_first,
                hosts=template_owner.get("numOfHosts") or 1,
                gpu_resource=next((name for name in gpu_resources(pools) if group.usage.get(name)), GPU_RESOURCE),
                drain=drain_of(pod, cluster.get("rayVersion")) if drains else None,
            )
        )
    return found


def _at(body: Any, path: Path) -> Any:
    return functools.reduce(operator.getitem, path, body)
