"""What a stack makes beside RayClusters, as far as it can be told offline. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from components.priority_classes.manifests import priority_classes
from components.queues.kueue import cluster_queue
from components.queues.queue import children
from components.queues.volcano import volcano_queue
from components.ray_cluster.manifests import head_disruption_budget
from components.redis.manifests import stateful_set
from components.tenant.manifests import limit_range, namespace, resource_quota

from ..network import tenant_policies
from ..queues import queues_of
from ..redis import redis_parts
from ..settings import StackSettings, TenantSettings

Body = Mapping[str, Any]

Key = tuple[str, str]
"""Kind, and `<namespace>/<name>` or the name alone."""


def objects(stack: StackSettings) -> dict[Key, Body]:
    """The objects by what they are called."""
    found = {} if stack.platform else dict(_of_platform(stack))
    for tenant in stack.tenants:
        found |= _below(tenant.namespace_name, _of_tenant(stack, tenant))
    return found


def _of_platform(stack: StackSettings) -> Iterator[tuple[Key, Body]]:
    for body in (*priority_classes(stack.priorities), *_queues(stack)):
        yield (body["kind"], body["metadata"]["name"]), body
    for tenant in stack.tenants:
        if tenant.create_namespace:
            made = namespace(
                tenant.namespace_name,
                tenant.name,
                tenant.pod_security,
                tenant.owner,
                tenant.cost_center,
                tenant.labels,
            )
            yield ("Namespace", tenant.namespace_name), made
    for part in redis_parts(stack):
        of_redis = stateful_set(part.settings, part.namespace, part.clusters, stack.priorities.names.head)
        yield from _below(part.namespace, [of_redis]).items()


def _queues(stack: StackSettings) -> Iterator[Body]:
    if stack.scheduler is None:
        return
    queues = queues_of(stack)
    below = children(queues)
    for queue in queues:
        if stack.scheduler.volcano:
            yield volcano_queue(queue)
        elif not below[queue.name]:
            yield cluster_queue(queue, stack.nodes)


def _of_tenant(stack: StackSettings, tenant: TenantSettings) -> Iterator[Body]:
    yield from (head_disruption_budget(cluster) for cluster in tenant.clusters if not cluster.head.evictable)
    if stack.platform:
        return
    if tenant.quota:
        yield resource_quota(tenant.quota)
    if tenant.limits_in_force and (limits := limit_range(tenant.limits_in_force)):
        yield limits
    yield from tenant_policies(stack, tenant)


def _below(inside: str, bodies: Iterable[Body]) -> dict[Key, Body]:
    return {(body["kind"], f"{inside}/{body['metadata']['name']}"): body for body in bodies}
