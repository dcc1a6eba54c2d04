"""What a tenant's RayClusters, RayJobs and RayServices need together, and its limits, quota, queue and nodes do not
have. Pure functions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from components.capacity.placement import without_room
from components.external_cluster.manifests import demand_of_submission
from components.job_template.manifests import demand_of_cron_job
from components.ray_cluster.settings import RayClusterSettings
from components.ray_service.manifests import demand_of_update
from components.ray_service.settings import RayServiceSettings
from components.tenant.demand import Demand, beyond_limits, beyond_quota, of_claim, of_stateful_set
from core.body import Body
from core.problems import Path, Problem
from stacks.checks.places import Owner, in_cluster, is_in_cluster, of_owner, where_set
from stacks.checks.storage import claims_of
from stacks.objects.external_ray import checks
from stacks.objects.queues import beyond_queue
from stacks.objects.ray_clusters import (
    demanded,
    demanded_by_job,
    demanded_by_service,
    rendered,
    rendered_job,
    rendered_service,
    template_objects,
)
from stacks.objects.redis import backups_of, redis_of
from stacks.objects.tenant_programs import problems_of_history
from stacks.planning.demands import programs_of, workers_of
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class _Sized:
    """A valid RayCluster, RayJob or RayService of a tenant, with its pods."""

    path: Path
    """In the tenant's settings."""

    cluster: RayClusterSettings | None
    """The RayCluster itself, or its owner's; None for a job that runs on another."""

    body: Body
    demand: Demand
    owner: Owner | None = None

    size: bool = False
    """Whether it is a size of a job template."""

    placed: Callable[[Problem], Problem] = field(default=lambda problem: problem)
    """Of a size of a job template: a problem of its job, at its place in the template."""

    @property
    def update(self) -> Demand | None:
        """The pods of the second RayCluster of a RayService during an update; None if it has none."""
        upgrades = isinstance(self.owner, RayServiceSettings) and self.owner.upgrades
        return demand_of_update(self.demand, self.body) if upgrades else None


def without_room_for(tenant: TenantSettings, stack: StackSettings) -> Iterator[Problem]:
    """What exceeds the tenant's limits, its quota, its queue or the nodes, or would be changed by the limits; paths in
    the tenant's settings. Each RayCluster, RayJob and RayService is valid by itself."""
    everything = list(_sized(tenant, stack))
    demands = [each.demand for each in everything]
    programs = programs_of(stack, tenant)
    redis = [of_stateful_set(body, tenant.limits_in_force) for body in redis_of(stack, tenant)]
    fixed = [*((key, demand) for key, _, demand in programs), *_cron_jobs(tenant, stack)]
    others = [(f"the pod of {key}, whose resources are fixed", demand) for key, demand in fixed]
    for title, demand in (*others, *(("the pods of redis", each) for each in redis)):
        for beyond_them in beyond_limits([demand], tenant.limits_in_force):
            message = f"{title}: {beyond_them.problem.message}"
            yield Problem(("limits",), None, message, beyond_them.problem.rule)
    yield from problems_of_history(stack, tenant)
    found = list(beyond_limits(demands, tenant.limits_in_force))
    if not found and tenant.quota:
        standing = demands[: len(tenant.clusters) + len(tenant.services)]
        claims = [body for body in backups_of(stack, tenant) if body["kind"] == "PersistentVolumeClaim"]
        beside = [*redis, *(of_claim(body) for body in (*claims, *claims_of(tenant)))]
        beside += [demand_of_submission(body, tenant.limits_in_force) for body in checks(stack, tenant).values()]
        beside += [demand for _, _, demand in programs]
        found = list(beyond_quota(standing, tenant.quota, beside))
        # Jobs may run one after the other, so each has to fit beside what always runs, and not beside other jobs. The
        # same is true for updates of services.
        at_times = [*enumerate(each.update for each in everything), *enumerate(demands[len(standing) :], len(standing))]
        for at, one in at_times if not found else ():
            a_size = everything[at].size
            beyond = beyond_quota([one], tenant.quota, [*beside, *standing], a_size=a_size) if one else ()
            found += (replace(each, cluster=None if each.cluster is None else at) for each in beyond)
    for problem in found:
        if problem.cluster is None:
            yield problem.problem.below(("quota",))
        else:
            yield _placed(tenant, stack, everything[problem.cluster], problem.problem)
    for each in everything:
        if each.cluster:
            refused = list(beyond_queue(stack, tenant, each.cluster, each.demand))
            # Of the two, Kueue counts one.
            if each.update and not refused and not (stack.scheduler and stack.scheduler.kueue):
                both = (*each.demand.groups, *each.update.groups)
                twice = replace(each.demand, name=f"{each.demand.name}, twice during an update", groups=both)
                refused += beyond_queue(stack, tenant, each.cluster, twice)
            workers = workers_of(stack.nodes, each.cluster.name, each.body, each.demand) if stack.nodes else ()
            unbound = {group.group_name for group in each.cluster.worker_groups if group.pool is None}
            refused += without_room(zip(each.demand.groups, workers, strict=False), stack.nodes, unbound)
            yield from (_placed(tenant, stack, each, problem) for problem in refused)


def _cron_jobs(tenant: TenantSettings, stack: StackSettings) -> Iterator[tuple[str, Demand]]:
    """What the pods of the tenant's CronJobs use, each with the key that it is for."""
    found = [("redis.backup", body) for body in backups_of(stack, tenant) if body["kind"] == "CronJob"]
    for template in tenant.job_templates:
        objects = template_objects(stack, tenant, template)
        found += [(f"job template {template.name!r}", body) for body in objects.values() if body["kind"] == "CronJob"]
    yield from ((key, demand_of_cron_job(body, tenant.limits_in_force)) for key, body in found)


def _placed(tenant: TenantSettings, stack: StackSettings, sized: _Sized, problem: Problem) -> Problem:
    """A problem of a body, at the setting of the tenant that causes it."""
    owner, own = sized.owner, sized.cluster
    if owner and own and is_in_cluster(problem):
        found = where_set(own, stack.nodes, rendered(stack, tenant, own), in_cluster(problem)).below(("cluster",))
    elif owner:
        found = of_owner(owner, sized.body, problem)
    else:
        assert own is not None
        found = where_set(own, stack.nodes, sized.body, problem)
    return sized.placed(found).below(sized.path)


def _sized(tenant: TenantSettings, stack: StackSettings) -> Iterator[_Sized]:
    for at, cluster in enumerate(tenant.clusters):
        body, demand = rendered(stack, tenant, cluster), demanded(stack, tenant, cluster)
        yield _Sized(("clusters", at), cluster, body, demand)
    for at, service in enumerate(tenant.services):
        body, demand = rendered_service(stack, tenant, service), demanded_by_service(stack, tenant, service)
        yield _Sized(("services", at), service.own_cluster, body, demand, service)
    for path, job in tenant.placed_jobs:
        body, demand = rendered_job(stack, tenant, job), demanded_by_job(stack, tenant, job)
        yield _Sized(path, job.own_cluster, body, demand, job)
    for path, template, size, job in tenant.placed_sizes:
        body, demand = rendered_job(stack, tenant, job), demanded_by_job(stack, tenant, job)
        titled = replace(demand, name=f"{demand.name}, size {size}")
        yield _Sized(path, job.own_cluster, body, titled, job, size=True, placed=partial(template.of_size, size))
