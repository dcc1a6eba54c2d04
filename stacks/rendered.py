"""The RayClusters of a tenant, rendered for a stack."""

from collections.abc import Iterator, Sequence
from typing import Any

from components.priority_classes.settings import NO_PRIORITIES, PriorityNames
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.scheduling import NO_SCHEDULING, Scheduling
from components.ray_cluster.settings import RayClusterSettings
from components.tenant.demand import Demand, demand
from core.images import not_allowed
from core.nodes import NodePool
from core.problems import Path

from .once import once
from .queues import scheduling_of
from .redis import redis_connection
from .settings import StackSettings, TenantSettings
from .tenant_defaults import with_tenant_defaults

Body = dict[str, Any]


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
    gateway = stack.redis.gateway
    on = stack.redis.mode == "managed" if gateway.enabled is None else gateway.enabled
    return RedisPlace(connection, tenant.namespace_name, gateway if on else None)


def tenants_images_not_allowed(
    body: Body, registries: Sequence[str], redis: RedisPlace | None
) -> Iterator[tuple[Path, str]]:
    """The images of a RayCluster that come from none of the registries that its tenant may use.

    The gateway's image is excluded: whoever provides Redis chooses it, not the tenant.
    """
    gateway = redis.gateway.image if redis and redis.gateway else None
    return ((path, image) for path, image in not_allowed(body, registries) if image != gateway)
