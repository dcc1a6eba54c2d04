"""RayClusters and RayJobs that KubeRay, the API server, the scheduler or their tenant's limits would refuse. Pure
functions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.capacity.room import without_room
from components.network.rules import exposed, ingress_not_allowed
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.origin import setting_at
from components.ray_cluster.pod_problems import of_the_defaults, pod_problems
from components.ray_cluster.rules import redis_problems
from components.ray_cluster.scheduling import gang_in_part, not_with_kueue
from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.slots import without_slots
from components.ray_cluster.undone import undone
from components.ray_cluster.wording import of_the_stack
from components.ray_job.origin import job_setting_at
from components.ray_job.settings import RayJobSettings
from components.tenant.demand import Demand, of_claim, of_stateful_set
from components.tenant.rules import beyond_limits, beyond_quota
from core.nodes import NodePool
from core.problems import Path, Problem, Problems, place
from core.versions import UnsupportedVersionError
from kuberay import OperatorContext, validate
from kuberay.releases import WORKLOADS_GATE, check_ray

from .jobs import problems_of_references, problems_of_submitter, problems_with_kueue
from .planning.demands import workers_of
from .queues import beyond_queue, scheduling_of
from .redis import redis_of
from .rendered import demanded, demanded_by_job, redis_place, rendered, rendered_job, tenants_images_not_allowed
from .settings import StackSettings, TenantSettings
from .storage import claims_of, problems_of_home

Body = dict[str, Any]


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
    for at, cluster in enumerate(tenant.clusters):
        found = list(_of_cluster(tenant, stack, operator, cluster))
        valid = valid and not found
        yield from (problem.below(("clusters", at)) for problem in found)
    for at, job in enumerate(tenant.jobs):
        found = list(_of_job(tenant, stack, operator, job))
        valid = valid and not found
        yield from (problem.below(("jobs", at)) for problem in found)
    # A RayCluster with errors has no size yet.
    if valid:
        yield from _beyond(tenant, stack, list(_sized(tenant, stack)))


def _of_cluster(
    tenant: TenantSettings, stack: StackSettings, operator: OperatorContext, cluster: RayClusterSettings
) -> Iterator[Problem]:
    """The problems of a RayCluster by itself; paths in its settings."""
    # On the platform of another stack, that stack decides whether Ingresses are allowed.
    if stack.platform is None:
        yield from ingress_not_allowed(cluster, tenant.network)
    yield from _too_old(cluster, operator)
    try:
        body = rendered(stack, tenant, cluster)
    except Problems as error:
        yield from error.problems
        return
    refused = [of_the_stack(cluster, each, body) for each in validate(body, operator)]
    yield from _of_body(tenant, stack, cluster, body, refused)
    if stack.scheduler and stack.scheduler.kueue:
        yield from not_with_kueue(cluster, scheduling_of(stack, tenant, cluster), stack.scheduler.kueue, body)


def _of_body(
    tenant: TenantSettings, stack: StackSettings, cluster: RayClusterSettings, body: Body, refused: list[Problem]
) -> Iterator[Problem]:
    """The problems of a rendered RayCluster; paths in its settings. `refused`: those that KubeRay finds, with paths in
    the body, which hide others."""
    place = redis_place(stack, tenant)
    refused = refused or [
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
    yield from by_default
    if stack.scheduler:
        yield from gang_in_part(cluster, body)
    if not refused:
        yield from problems_of_home(stack, tenant, cluster, body)
    yield from (_where_set(cluster, stack.nodes, body, problem) for problem in refused)


def _of_job(
    tenant: TenantSettings, stack: StackSettings, operator: OperatorContext, job: RayJobSettings
) -> Iterator[Problem]:
    """The problems of a RayJob by itself; paths in its settings."""
    if references := list(problems_of_references(stack, tenant, job)):
        yield from references
        return
    own = job.own_cluster
    if own:
        yield from (problem.below(("cluster",)) for problem in _too_old(own, operator))
    try:
        body = rendered_job(stack, tenant, job)
    except Problems as error:
        yield from error.problems
        return
    refused = validate(body, operator)
    of_cluster = [_in_cluster(each) for each in refused if each.path[:2] == _OWN_CLUSTER]
    of_job = [each for each in refused if each.path[:2] != _OWN_CLUSTER]
    of_job = of_job or list(problems_of_submitter(job, body, tenant.level_in_force))
    yield from (Problem(job_setting_at(job, each.path), each.value, each.message, each.rule) for each in of_job)
    if own:
        cluster = rendered(stack, tenant, own)
        found = _of_body(tenant, stack, own, cluster, [of_the_stack(own, each, cluster) for each in of_cluster])
        yield from (problem.below(("cluster",)) for problem in found)
        yield from problems_with_kueue(stack, tenant, job, own, cluster)


_OWN_CLUSTER = ("spec", "rayClusterSpec")
"""Path of the cluster in a RayJob."""


def _in_cluster(problem: Problem) -> Problem:
    """A problem of a RayJob's cluster, as of a RayCluster."""
    return replace(problem, path=("spec", *problem.path[len(_OWN_CLUSTER) :]))


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


def _images(tenant: TenantSettings, place: RedisPlace | None, body: Body) -> Iterator[Problem]:
    registries = tenant.images.registries
    for path, image in tenants_images_not_allowed(body, registries, place):
        message = (
            f"image {image!r} is from none of the registries that tenant {tenant.name!r} may use "
            f"({', '.join(registries)}): use one from there, or add its registry to the tenant's images.registries"
        )
        yield Problem(path, image, message, "image-registry")


@dataclass(frozen=True)
class _Sized:
    """A valid RayCluster or RayJob of a tenant, with its pods."""

    path: Path
    """In the tenant's settings."""

    cluster: RayClusterSettings | None
    """The RayCluster itself, or the RayJob's own; None if the job runs on another."""

    body: Body
    demand: Demand
    job: RayJobSettings | None = None


def _sized(tenant: TenantSettings, stack: StackSettings) -> Iterator[_Sized]:
    for at, cluster in enumerate(tenant.clusters):
        body, demand = rendered(stack, tenant, cluster), demanded(stack, tenant, cluster)
        yield _Sized(("clusters", at), cluster, body, demand)
    for at, job in enumerate(tenant.jobs):
        body, demand = rendered_job(stack, tenant, job), demanded_by_job(stack, tenant, job)
        yield _Sized(("jobs", at), job.own_cluster, body, demand, job)


def _beyond(tenant: TenantSettings, stack: StackSettings, everything: Sequence[_Sized]) -> Iterator[Problem]:
    """What exceeds the tenant's limits, its quota, its queue or the nodes, or would be changed by the limits."""
    demands = [each.demand for each in everything]
    found = list(beyond_limits(demands, tenant.limits_in_force))
    if not found and tenant.quota:
        standing = demands[: len(tenant.clusters)]
        beside = [of_stateful_set(body, tenant.limits_in_force) for body in redis_of(stack, tenant)]
        beside += [of_claim(body) for body in claims_of(tenant)]
        found = list(beyond_quota(standing, tenant.quota, beside))
        # Jobs may run one after the other, so each has to fit beside what always runs, and not beside other jobs.
        for at in range(len(standing), len(demands)) if not found else ():
            of_job = beyond_quota([demands[at]], tenant.quota, [*beside, *standing])
            found += (replace(each, cluster=None if each.cluster is None else at) for each in of_job)
    for problem in found:
        if problem.cluster is None:
            yield problem.problem.below(("quota",))
        else:
            yield _placed(tenant, stack, everything[problem.cluster], problem.problem)
    for each in everything:
        if each.cluster:
            refused = list(beyond_queue(stack, tenant, each.cluster, each.demand))
            workers = workers_of(each.cluster.name, each.body, each.demand) if stack.nodes else ()
            unbound = {group.group_name for group in each.cluster.worker_groups if group.pool is None}
            refused += without_room(zip(each.demand.groups, workers, strict=False), stack.nodes, unbound)
            yield from (_placed(tenant, stack, each, problem) for problem in refused)


def _placed(tenant: TenantSettings, stack: StackSettings, sized: _Sized, problem: Problem) -> Problem:
    """A problem of a body, at the setting of the tenant that causes it."""
    job, own = sized.job, sized.cluster
    if job and own and problem.path[:2] == _OWN_CLUSTER:
        found = _where_set(own, stack.nodes, rendered(stack, tenant, own), _in_cluster(problem)).below(("cluster",))
    elif job:
        found = Problem(job_setting_at(job, problem.path), problem.value, problem.message, problem.rule)
    else:
        assert own is not None
        found = _where_set(own, stack.nodes, sized.body, problem)
    return found.below(sized.path)
