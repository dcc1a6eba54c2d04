"""The Redis instances of a stack, and the tenants that use them. Pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from components.redis.connection import RedisConnection, connection
from components.redis.manifests import backup_objects, stateful_set
from components.redis.settings import RedisSettings
from components.redis_gateway.manifests import config_map
from core.body import Body
from core.problems import Problem
from stacks.cached import cached
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class RedisPart:
    settings: RedisSettings

    namespace: str

    tenants: tuple[TenantSettings, ...]
    """The tenants that may use it."""

    of_tenant: bool
    """Whether it is in its only tenant's namespace."""

    own_namespace: bool = False
    """Whether the stack creates its namespace for it alone."""

    @property
    def clusters(self) -> int:
        """RayClusters that use it. Includes those of tenants' separate stacks, because these may use it; those of a job
        template and of a service count once, although some may run at a time."""
        return sum(
            sum(cluster.fault_tolerance for cluster in tenant.all_clusters) + len(_elsewhere(tenant))
            for tenant in self.tenants
        )


def uses_redis(tenant: TenantSettings) -> bool:
    """Whether a tenant has RayClusters with fault tolerance, or may have them in a separate stack."""
    return bool(_elsewhere(tenant)) or any(cluster.fault_tolerance for cluster in tenant.all_clusters)


def _elsewhere(tenant: TenantSettings) -> tuple[str, ...]:
    """Names of what a separate stack of the tenant creates, which may use Redis."""
    return (*tenant.cluster_names, *tenant.job_names, *tenant.service_names)


def redis_users(stack: StackSettings) -> tuple[TenantSettings, ...]:
    return tuple(tenant for tenant in stack.tenants if uses_redis(tenant))


@cached
def redis_parts(stack: StackSettings) -> list[RedisPart]:
    settings = stack.redis
    if settings is None or settings.mode == "external" or stack.platform is not None:
        return []
    if settings.scope == "perTenant":
        users = redis_users(stack)
        return [RedisPart(settings, tenant.namespace_name, (tenant,), of_tenant=True) for tenant in users]
    # Every tenant has a user: the cleanup Job still needs it after the tenant's last RayCluster leaves the stack file.
    namespace = _shared_namespace(settings, stack)
    own = namespace != stack.operator.namespace
    return [RedisPart(settings, namespace, stack.tenants, of_tenant=False, own_namespace=own)]


def shared_redis(stack: StackSettings) -> RedisPart | None:
    """The Redis of all tenants, if the stack has one."""
    return next((part for part in redis_parts(stack) if not part.of_tenant), None)


@cached
def redis_stateful_set(stack: StackSettings, part: RedisPart) -> Body:
    """The StatefulSet of a Redis; its namespace is the part's."""
    return stateful_set(part.settings, part.namespace, part.clusters, stack.priorities.names.head)


def redis_of(stack: StackSettings, tenant: TenantSettings) -> list[Body]:
    """The StatefulSets of the tenant's own Redis, in its namespace."""
    part = _own_parts(stack).get(tenant.namespace_name)
    return [redis_stateful_set(stack, part)] if part else []


def backups_of(stack: StackSettings, tenant: TenantSettings) -> list[Body]:
    """The claim and the CronJobs with which the tenant's own Redis is backed up and restored."""
    part = _own_parts(stack).get(tenant.namespace_name)
    backup = part.settings.backup if part else None
    return backup_objects(part.settings, backup, part.namespace, part.clusters) if part and backup else []


@cached
def _own_parts(stack: StackSettings) -> Mapping[str, RedisPart]:
    """By namespace, each Redis of a single tenant."""
    return {part.namespace: part for part in redis_parts(stack) if part.of_tenant}


def redis_connection(stack: StackSettings, tenant: TenantSettings) -> RedisConnection | None:
    """How a tenant's RayClusters reach their Redis; None if the stack configures none."""
    if stack.redis is None:
        return None
    shared = stack.redis.scope == "shared"
    return connection(stack.redis, _shared_namespace(stack.redis, stack) if shared else tenant.namespace_name)


def problems_of_redis(stack: StackSettings) -> Iterator[Problem]:
    """Settings that conflict with the stack's Redis."""
    namespace = stack.redis.namespace if stack.redis else None
    if namespace is None:
        return
    owner = next((tenant.name for tenant in stack.tenants if tenant.namespace_name == namespace), None)
    if owner:
        message = (
            f"namespace {namespace!r} is that of tenant {owner!r}, whose people may read Secrets there: set another, "
            "or scope: perTenant for a Redis in each tenant's"
        )
        yield Problem(("redis", "namespace"), namespace, message, "redis-namespace")


def gateway_program(stack: StackSettings, tenant: TenantSettings) -> Body | None:
    """The ConfigMap with the program of the gateways beside a tenant's heads; None if it has none."""
    return config_map() if stack.redis and stack.redis.used_gateway and uses_redis(tenant) else None


def _shared_namespace(settings: RedisSettings, stack: StackSettings) -> str:
    return settings.namespace or stack.operator.namespace
