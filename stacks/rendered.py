"""The RayClusters of a tenant, with its defaults, rendered for a stack. Pure functions."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from components.priority_classes.settings import NO_PRIORITIES, PriorityNames
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.node_settings import WorkersSettings
from components.ray_cluster.scheduling import NO_SCHEDULING, Scheduling
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.demand import demand_of_job
from components.ray_job.manifests import ray_job
from components.ray_job.settings import RayJobSettings
from components.storage.manifests import mounted
from components.tenant.demand import Demand, demand
from core.images import not_allowed
from core.nodes import NodePool
from core.problems import Path, Problems
from core.quantities import amount

from .queues import scheduling_of
from .redis import redis_connection
from .settings import StackSettings, TenantSettings, once

Body = dict[str, Any]


def bounds(tenant: TenantSettings, resource: str) -> list[tuple[str, Decimal]]:
    """The limits of the tenant's `gpus`, `cpu` or `memory`, each with its name for people: quota, and its own queue.

    A shared queue does not limit a single tenant.
    """
    queue = tenant.queue.capability if tenant.queue and tenant.queue.name is None else None
    limits = [("quota", getattr(tenant.quota, resource, None)), ("queue", getattr(queue, resource, None))]
    return [(name, amount(str(value))) for name, value in limits if value is not None]


def with_tenant_defaults(tenant: TenantSettings, cluster: RayClusterSettings) -> RayClusterSettings:
    """A RayCluster with the tenant's defaults, and with its storage as volumes, mounts and HF_HOME."""
    secrets = tuple(dict.fromkeys([*tenant.images.pull_secrets, *cluster.image_pull_secrets]))
    workers = tuple(_within_budget(tenant, each) for each in cluster.workers)
    storage = mounted(cluster.storage, tenant.storage)
    return cluster.model_copy(
        update={
            "image_pull_secrets": secrets,
            "workers": workers,
            "volumes": (*cluster.volumes, *storage.volumes),
            "volume_mounts": (*cluster.volume_mounts, *storage.mounts),
            "env": {**storage.env, **cluster.env},
        }
    )


def _within_budget(tenant: TenantSettings, workers: WorkersSettings) -> WorkersSettings:
    """Workers with the tenant's limits as their budget, for each resource of the budget that is not set."""
    if workers.profile != "tiling":
        return workers
    least: dict[str, Any] = {}
    for resource in ("gpus", "cpu", "memory"):
        found = [value for _, value in bounds(tenant, resource)]
        if found and getattr(workers.budget, resource) is None:
            least[resource] = int(min(found)) if resource == "gpus" else f"{min(found):f}"
    return workers.model_copy(update={"budget": workers.budget.model_copy(update=least)})


@once
def rendered(stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings) -> Body:
    """The RayCluster's body with all values from stack and tenant, except those that only an update knows.

    Raises Problems, with paths in the cluster's settings, as `ray_cluster` does.
    """
    place, scheduling = redis_place(stack, tenant), scheduling_of(stack, tenant, cluster)
    return as_tenant_gives(tenant, cluster, stack.nodes, place, scheduling, stack.priorities.names)


@once
def demanded(stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings) -> Demand:
    """What the RayCluster uses of its tenant's quota. Raises Problems as `rendered` does."""
    return demand(rendered(stack, tenant, cluster), tenant.limits_in_force)


@once
def rendered_job(stack: StackSettings, tenant: TenantSettings, job: RayJobSettings) -> Body:
    """The RayJob's body with all values from stack and tenant. Raises Problems, with paths in the RayJob's settings."""
    selector = job.cluster_selector
    selected = next((each for each in tenant.clusters if selector and each.name == selector.cluster), None)
    own, place = job.own_cluster, job.own_cluster or selected
    try:
        body = rendered(stack, tenant, own) if own else None
    except Problems as error:
        raise Problems(problem.below(("cluster",)) for problem in error.problems) from error
    return ray_job(job, body, with_tenant_defaults(tenant, place) if place else None)


@once
def demanded_by_job(stack: StackSettings, tenant: TenantSettings, job: RayJobSettings) -> Demand:
    """What the RayJob and its cluster use of their tenant's quota. Raises Problems as `rendered_job` does."""
    return demand_of_job(rendered_job(stack, tenant, job), tenant.limits_in_force)


def as_tenant_gives(
    tenant: TenantSettings,
    cluster: RayClusterSettings,
    pools: tuple[NodePool, ...] = (),
    redis: RedisPlace | None = None,
    scheduling: Scheduling = NO_SCHEDULING,
    priorities: PriorityNames = NO_PRIORITIES,
) -> Body:
    """The RayCluster's body with all values that its tenant adds. Raises Problems as `ray_cluster` does."""
    account = tenant.service_account(cluster)
    return ray_cluster(with_tenant_defaults(tenant, cluster), pools, account, priorities, redis, scheduling)


def redis_place(stack: StackSettings, tenant: TenantSettings) -> RedisPlace | None:
    """Where the GCS of the tenant's RayClusters stores its tables; None if the stack has no Redis."""
    connection = redis_connection(stack, tenant)
    if stack.redis is None or connection is None:
        return None
    return RedisPlace(connection, tenant.namespace_name, stack.redis.gateway if stack.redis.with_gateway else None)


def tenants_images_not_allowed(
    body: Body, registries: Sequence[str], redis: RedisPlace | None
) -> Iterator[tuple[Path, str]]:
    """The images of a RayCluster that come from none of the registries that its tenant may use.

    The gateway's image is excluded: whoever provides Redis chooses it, not the tenant.
    """
    gateway = redis.gateway.image if redis and redis.gateway else None
    return ((path, image) for path, image in not_allowed(body, registries) if image != gateway)
