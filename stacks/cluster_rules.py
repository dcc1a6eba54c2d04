"""What is not allowed for the RayClusters of a stack: KubeRay, the API server or their tenant's limits would refuse
it."""

from collections.abc import Iterator
from typing import Any

from components.network.rules import exposed, ingress_not_allowed
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.origin import said_at
from components.ray_cluster.rules import of_the_stack, redis_problems
from components.ray_cluster.scheduling import gang_in_part, not_with_kueue
from components.ray_cluster.settings import RayClusterSettings
from components.tenant.demand import of_stateful_set
from components.tenant.rules import beyond_limits, beyond_quota
from core.findings import place
from core.nodes import NodePool
from core.problems import Problem, Problems
from core.versions import UnsupportedVersionError
from kuberay import OperatorContext, validate
from kuberay.releases import check_ray

from .queues import beyond_queue, scheduling_of
from .redis import redis_of
from .rendered import demanded, redis_place, rendered, tenants_images_not_allowed
from .settings import StackSettings, TenantSettings

Body = dict[str, Any]


def problems_of_clusters(stack: StackSettings) -> Iterator[Problem]:
    """All problems of a stack's RayClusters, each by itself and a tenant's together."""
    settings = stack.operator_in_force
    operator = OperatorContext(settings.version, settings.batch_scheduler, dict(settings.feature_gates))
    for index, tenant in enumerate(stack.tenants):
        found = list(_of_tenant(tenant, stack, operator))
        yield from (problem.below(("tenants", index)) for problem in found)


def _of_tenant(tenant: TenantSettings, stack: StackSettings, operator: OperatorContext) -> Iterator[Problem]:
    sound = True
    place = redis_place(stack, tenant)
    for at, cluster in enumerate(tenant.clusters):
        # On the platform of another stack, that stack decides whether Ingresses are allowed.
        found = list(ingress_not_allowed(cluster, tenant.network)) if stack.platform is None else []
        found += _too_old(cluster, operator)
        try:
            body = rendered(stack, tenant, cluster)
        except Problems as error:
            found += error.problems
        else:
            refused = [of_the_stack(cluster, each) for each in validate(body, operator)] or [
                *exposed(cluster, body["spec"]),
                *redis_problems(cluster, place, body),
                *_images(tenant, place, body),
            ]
            found += _of_the_scheduler(stack, tenant, cluster, body)
            found += [_where_set(cluster, stack.nodes, body, problem) for problem in refused]
        sound = sound and not found
        yield from (problem.below(("clusters", at)) for problem in found)
    # A RayCluster with errors has no size yet.
    if sound:
        yield from _beyond(tenant, stack)
        for at, cluster in enumerate(tenant.clusters):
            body = rendered(stack, tenant, cluster)
            refused = list(beyond_queue(stack, tenant, cluster, demanded(stack, tenant, cluster)))
            found = [_where_set(cluster, stack.nodes, body, each) for each in refused]
            yield from (problem.below(("clusters", at)) for problem in found)


def _too_old(cluster: RayClusterSettings, operator: OperatorContext) -> Iterator[Problem]:
    """A Ray version that the operator does not support."""
    try:
        check_ray(operator.version, [cluster.ray_version])
    except UnsupportedVersionError as error:
        yield Problem(("rayVersion",), cluster.ray_version, str(error), "operator-ray-version")


def _where_set(cluster: RayClusterSettings, pools: tuple[NodePool, ...], body: Body, problem: Problem) -> Problem:
    """Maps a problem of a body to the cluster's setting that causes it."""
    path = said_at(cluster, pools, body["spec"], problem.path)
    # If the refused value is derived from the setting, the message also names the refused field.
    derived = path[-1:] != problem.path[-1:]
    message = f"RayCluster {place(problem.path)}: {problem.message}" if derived else problem.message
    return Problem(path, problem.value, message, problem.rule)


def _of_the_scheduler(
    stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings, body: Body
) -> Iterator[Problem]:
    """What the stack's scheduler does not support in a RayCluster; paths are in its settings."""
    if stack.scheduler is None:
        return
    yield from gang_in_part(cluster, body)
    if stack.scheduler.kueue:
        yield from not_with_kueue(cluster, scheduling_of(stack, tenant, cluster), stack.scheduler.kueue, body)


def _images(tenant: TenantSettings, place: RedisPlace | None, body: Body) -> Iterator[Problem]:
    registries = tenant.images.registries
    for path, image in tenants_images_not_allowed(body, registries, place):
        message = (
            f"image {image!r} is from none of the registries that tenant {tenant.name!r} may use "
            f"({', '.join(registries)}): use one from there, or add its registry to the tenant's images.registries"
        )
        yield Problem(path, image, message, "image-registry")


def _beyond(tenant: TenantSettings, stack: StackSettings) -> Iterator[Problem]:
    """Which of the tenant's clusters exceed its limits or its quota, or would be changed by the limits."""
    demands = [demanded(stack, tenant, cluster) for cluster in tenant.clusters]
    found = list(beyond_limits(demands, tenant.limits_in_force))
    if not found and tenant.quota:
        beside = [of_stateful_set(body, tenant.limits_in_force) for body in redis_of(stack, tenant)]
        found = list(beyond_quota(demands, tenant.quota, beside))
    for each in found:
        if each.cluster is None:
            yield each.problem.below(("quota",))
        else:
            cluster = tenant.clusters[each.cluster]
            problem = _where_set(cluster, stack.nodes, rendered(stack, tenant, cluster), each.problem)
            yield problem.below(("clusters", each.cluster))
