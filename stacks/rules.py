"""Validation between the parts of a stack file: names and references, and RayClusters that KubeRay, the API server or
their tenant's limits would refuse. Pure functions.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic.alias_generators import to_camel

from components.capacity.room import without_room
from components.network.rules import exposed, ingress_not_allowed, ingress_problems
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.origin import setting_at
from components.ray_cluster.pod_problems import of_the_defaults, pod_problems
from components.ray_cluster.rules import redis_problems
from components.ray_cluster.scheduling import gang_in_part, not_with_kueue
from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.slots import without_slots
from components.ray_cluster.undone import undone
from components.ray_cluster.wording import of_the_stack
from components.tenant.demand import of_claim, of_stateful_set
from components.tenant.rules import beyond_limits, beyond_quota
from core.nodes import NodePool
from core.problems import Path, Problem, Problems, place
from core.versions import UnsupportedVersionError
from kuberay import OperatorContext, validate
from kuberay.releases import WORKLOADS_GATE, check_ray

from .access import problems_of_admission, problems_of_hosts
from .environment.part import problems_of_split
from .namespaces import namespace_setting, problems_of_namespaces
from .planning.demands import workers_of
from .planning.overcommitment import overcommitments
from .planning.plan import plan_of
from .platform_outputs import problems_of_platform
from .pools import problems_of_pools
from .queues import beyond_queue, problems_of_scheduling, scheduling_of
from .redis import problems_of_redis, redis_of
from .rendered import demanded, redis_place, rendered, tenants_images_not_allowed
from .settings import StackSettings, TenantSettings
from .storage import claims_of, problems_of_home, problems_of_storage

Body = dict[str, Any]

_OF_A_NEW_NAMESPACE = {"owner", "cost_center", "labels", "pod_security"}
"""Settings of a tenant that are only possible for a namespace that the stack creates."""


def problems_of(stack: StackSettings) -> list[Problem]:
    """All problems between the parts of a stack."""
    found = [
        *problems_of_platform(stack),
        *_names(stack),
        *problems_of_pools(stack),
        *problems_of_namespaces(stack),
        *_not_made(stack),
        *_people(stack),
        *_ingresses(stack),
        *problems_of_redis(stack),
        *problems_of_storage(stack),
        *problems_of_split(stack),
        *problems_of_scheduling(stack),
        *problems_of_admission(stack),
        *problems_of_clusters(stack),
    ]
    if stack.capacity.overcommitment == "error" and not found:
        found += overcommitments(plan_of(stack))
    return found


def _names(stack: StackSettings) -> Iterator[Problem]:
    tenants = list(enumerate(stack.tenants))
    yield from _repeated((("nodes", index, "pool"), pool.pool) for index, pool in enumerate(stack.nodes))
    yield from _repeated((("tenants", index, "name"), tenant.name) for index, tenant in tenants)
    named_once = {tenant.name: (index, tenant) for index, tenant in reversed(tenants)}
    yield from _repeated(
        (namespace_setting(index, tenant), tenant.namespace_name) for index, tenant in reversed(named_once.values())
    )
    for index, tenant in tenants:
        named: list[tuple[Path, str]] = [
            *((("tenants", index, "clusters", at, "name"), cluster.name) for at, cluster in enumerate(tenant.clusters)),
            *((("tenants", index, "clusterNames", at), name) for at, name in enumerate(tenant.cluster_names)),
        ]
        yield from _repeated(named)
        yield from _repeated((("tenants", index, "storage", at, "name"), e.name) for at, e in enumerate(tenant.storage))


def _repeated(named: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path, name in named:
        if name in first:
            message = f"{name!r} is used already, in {place(first[name][:-1])}: set a unique name"
            yield Problem(path, name, message, "repeated-name")
        first.setdefault(name, path)


def _people(stack: StackSettings) -> Iterator[Problem]:
    """Each subject is listed once, so that no other place gives it more or fewer rights."""
    admins = enumerate(stack.access.cluster_admins)
    yield from _named_twice((("access", "clusterAdmins", at), subject) for at, subject in admins)
    for index, tenant in enumerate(stack.tenants):
        subjects: list[tuple[Path, str]] = [
            *((("tenants", index, "admins", at), subject) for at, subject in enumerate(tenant.admins)),
            *((("tenants", index, "users", at, "subject"), user.subject) for at, user in enumerate(tenant.users)),
        ]
        yield from _named_twice(subjects)
        yield from (problem.below(("tenants", index)) for problem in _users(tenant))


def _named_twice(subjects: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path, subject in subjects:
        if subject in first:
            message = (
                f"{subject!r} is named already, in {place(first[subject])}: set all rights there, and remove the "
                "entry here (admins have all rights of users)"
            )
            yield Problem(path, subject, message, "repeated-subject")
        first.setdefault(subject, path)


def _users(tenant: TenantSettings) -> Iterator[Problem]:
    names = [*(cluster.name for cluster in tenant.clusters), *tenant.cluster_names]
    for at, user in enumerate(tenant.users):
        for position, name in enumerate(user.clusters or ()):
            if name not in names:
                known = f"use one of {', '.join(names)}, or " if names else ""
                message = f"tenant {tenant.name!r} has no cluster {name!r}: {known}add it to clusters or clusterNames"
                yield Problem(("users", at, "clusters", position), name, message, "unknown-cluster")
        if user.submit_jobs and user.clusters == ():
            message = "submitJobs without a cluster to submit to: name one in clusters, or remove submitJobs"
            yield Problem(("users", at, "submitJobs"), True, message, "jobs-without-cluster")


def _ingresses(stack: StackSettings) -> Iterator[Problem]:
    for index, tenant in enumerate(stack.tenants):
        found = ingress_problems(tenant.network, stack.network)
        yield from (problem.below(("tenants", index, "network")) for problem in found)
    yield from problems_of_hosts(stack)


def _not_made(stack: StackSettings) -> Iterator[Problem]:
    """Settings of a namespace that the stack does not create."""
    for index, tenant in enumerate(stack.tenants):
        for field in sorted(_OF_A_NEW_NAMESPACE & tenant.model_fields_set) if not tenant.create_namespace else ():
            message = (
                "createNamespace is false, so the stack does not change the namespace: remove this key, and label the "
                "namespace where it is created"
            )
            yield Problem(("tenants", index, to_camel(field)), getattr(tenant, field), message, "namespace-not-made")


def problems_of_clusters(stack: StackSettings) -> Iterator[Problem]:
    """All problems of a stack's RayClusters, each by itself and a tenant's together."""
    settings = stack.operator_in_force
    if settings.batch_scheduler and settings.feature_gates.get(WORKLOADS_GATE):
        message = (
            f"KubeRay does not start with this gate and the batch scheduler {settings.batch_scheduler}: remove one"
        )
        yield Problem(("operator", "featureGates", WORKLOADS_GATE), True, message, "operator-feature-gate")
    operator = OperatorContext(settings.version, settings.batch_scheduler, dict(settings.feature_gates))
    for index, tenant in enumerate(stack.tenants):
        found = list(_of_tenant(tenant, stack, operator))
        yield from (problem.below(("tenants", index)) for problem in found)


def _of_tenant(tenant: TenantSettings, stack: StackSettings, operator: OperatorContext) -> Iterator[Problem]:
    valid = True
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
            refused = [of_the_stack(cluster, each, body) for each in validate(body, operator)] or [
                *exposed(cluster, body["spec"]),
                *redis_problems(cluster, place, body),
                *_images(tenant, place, body),
            ]
            refused = refused or [
                *undone(cluster, body),
                *without_slots(body),
                *pod_problems(body, tenant.level_in_force),
            ]
            if by_default := of_the_defaults(cluster, refused):
                refused = [each for each in refused if each.rule != "pod-security"]
            found += by_default
            found += _of_the_scheduler(stack, tenant, cluster, body)
            found += problems_of_home(stack, tenant, cluster, body) if not refused else []
            found += [_where_set(cluster, stack.nodes, body, problem) for problem in refused]
        valid = valid and not found
        yield from (problem.below(("clusters", at)) for problem in found)
    # A RayCluster with errors has no size yet.
    if valid:
        yield from _beyond(tenant, stack)
        for at, cluster in enumerate(tenant.clusters):
            body, demand = rendered(stack, tenant, cluster), demanded(stack, tenant, cluster)
            refused = list(beyond_queue(stack, tenant, cluster, demand))
            workers = workers_of(cluster.name, body, demand) if stack.nodes else ()
            unbound = {group.group_name for group in cluster.worker_groups if group.pool is None}
            refused += without_room(zip(demand.groups, workers, strict=False), stack.nodes, unbound)
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
    path = setting_at(cluster, pools, body["spec"], problem.path)
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
        beside += [of_claim(body) for body in claims_of(tenant)]
        found = list(beyond_quota(demands, tenant.quota, beside))
    for each in found:
        if each.cluster is None:
            yield each.problem.below(("quota",))
        else:
            cluster = tenant.clusters[each.cluster]
            problem = _where_set(cluster, stack.nodes, rendered(stack, tenant, cluster), each.problem)
            yield problem.below(("clusters", each.cluster))
