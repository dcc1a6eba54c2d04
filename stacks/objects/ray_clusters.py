"""The RayClusters of a tenant, with its defaults, rendered for a stack. Pure functions."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from components.external_cluster.manifests import demand_of_submission, submission
from components.external_cluster.settings import ExternalClusterSettings
from components.job_template.manifests import job_template, resource_names, schedule_objects
from components.job_template.settings import JobTemplateSettings
from components.logs.settings import LogsSettings
from components.priority_classes.settings import NO_PRIORITIES, PriorityNames
from components.ray_cluster.manifests import NO_SCHEDULING, Scheduling, ray_cluster
from components.ray_cluster.pods import RedisPlace
from components.ray_cluster.settings import RayClusterSettings, WorkersSettings
from components.ray_job.manifests import demand_of_job, ray_job
from components.ray_job.settings import RayJobSettings
from components.ray_service.manifests import demand_of_service, ray_service
from components.ray_service.settings import RayServiceSettings
from components.run_history.settings import LEAST_TTL_SECONDS
from components.storage.manifests import mounted
from components.tenant.demand import Demand, demand
from core.body import Body
from core.images import not_allowed
from core.nodes import NodePool
from core.problems import Path, Problems
from core.quantities import amount
from stacks.cached import cached
from stacks.objects.logs import logs_of
from stacks.objects.queues import scheduling_of
from stacks.objects.redis import redis_connection
from stacks.settings import StackSettings, TenantSettings


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


def with_pod_defaults(tenant: TenantSettings, cluster: RayClusterSettings) -> RayClusterSettings:
    """A RayCluster for a pod of the stack's own with its image. The pod templates by which a RayCluster with
    `podDefaults: none` meets Pod Security are not those of that pod, so it has the defaults."""
    needed = {"pod_defaults": "secure"} if tenant.level_in_force == "restricted" else {}
    return cluster.model_copy(update=needed)


def with_ray_dashboard(stack: StackSettings, cluster: RayClusterSettings) -> RayClusterSettings:
    """A RayCluster whose head knows the stack's Prometheus and Grafana, unless it has others."""
    known = stack.monitoring.ray_dashboard.env if stack.monitoring and stack.monitoring.ray_dashboard else {}
    if not known:
        return cluster
    env = {name: url for name, url in known.items() if name not in cluster.env}
    return cluster.model_copy(
        update={"head": cluster.head.model_copy(update={"env": {**env, **cluster.head.env}})},
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


@cached
def rendered(stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings) -> Body:
    """The RayCluster's body with all values from stack and tenant, except those that only an update knows.

    Raises Problems, with paths in the cluster's settings, as `ray_cluster` does.
    """
    place, scheduling = redis_place(stack, tenant), scheduling_of(stack, tenant, cluster)
    known = with_ray_dashboard(stack, cluster)
    return with_tenant_values(
        tenant, known, stack.nodes, place, scheduling, stack.priorities.names, logs_of(stack, tenant)
    )


@cached
def demanded(stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings) -> Demand:
    """What the RayCluster uses of its tenant's quota. Raises Problems as `rendered` does."""
    return demand(rendered(stack, tenant, cluster), tenant.limits_in_force)


@cached
def rendered_job(stack: StackSettings, tenant: TenantSettings, job: RayJobSettings) -> Body:
    """The RayJob's body, or that of the Job that submits to an external cluster, with all values from stack and tenant.

    Raises Problems, with paths in the RayJob's settings.
    """
    if external := external_cluster(tenant, job):
        return submission(job, external, tenant.images.pull_secrets)
    own = job.own_cluster
    try:
        body = rendered(stack, tenant, own) if own else None
    except Problems as error:
        raise Problems(problem.below(("cluster",)) for problem in error.problems) from error
    return ray_job(job, body, _place(tenant, job), _least_ttl(tenant, job))


def _least_ttl(tenant: TenantSettings, job: RayJobSettings) -> int | None:
    """How long the cluster of a job stays after it, so that the run history can read its head."""
    history = tenant.run_history
    return LEAST_TTL_SECONDS if history and history.needs_head(job.submission_mode) and job.shuts_down else None


def _place(tenant: TenantSettings, job: RayJobSettings) -> RayClusterSettings | None:
    """`tenant.cluster_of(job)`, with the tenant's defaults."""
    place = tenant.cluster_of(job)
    return with_tenant_defaults(tenant, place) if place else None


def external_cluster(tenant: TenantSettings, job: RayJobSettings) -> ExternalClusterSettings | None:
    """The external cluster that the job runs on; None if it has another one."""
    return next((each for each in tenant.external_clusters if each.name == job.external_cluster), None)


@cached
def demanded_by_job(stack: StackSettings, tenant: TenantSettings, job: RayJobSettings) -> Demand:
    """What the RayJob and its cluster use of their tenant's quota. Raises Problems as `rendered_job` does."""
    of = demand_of_submission if job.external_cluster else demand_of_job
    return of(rendered_job(stack, tenant, job), tenant.limits_in_force)


@cached
def rendered_service(stack: StackSettings, tenant: TenantSettings, service: RayServiceSettings) -> Body:
    """The RayService's body with all values from stack and tenant. Raises Problems, with paths in its settings."""
    try:
        return ray_service(service, rendered(stack, tenant, service.own_cluster))
    except Problems as error:
        raise Problems(problem.below(("cluster",)) for problem in error.problems) from error


@cached
def demanded_by_service(stack: StackSettings, tenant: TenantSettings, service: RayServiceSettings) -> Demand:
    """What the RayService uses of its tenant's quota between updates. Raises Problems as `rendered_service` does."""
    return demand_of_service(rendered_service(stack, tenant, service), tenant.limits_in_force)


def template_objects(stack: StackSettings, tenant: TenantSettings, template: JobTemplateSettings) -> dict[str, Body]:
    """A job template with its sizes and its schedule, by the names of their resources. Raises Problems as
    `rendered_job` does."""
    made = {
        name: job_template(
            template, rendered_job(stack, tenant, template.sized_jobs[size] if size else template.job), size
        )
        for name, size in resource_names(template).items()
    }
    if template.cron and (place := _place(tenant, template.job)):
        program = with_pod_defaults(tenant, place)
        scheduled = schedule_objects(template, template.cron, tenant.namespace_name, program)
        made |= {f"{template.name}:{part}": body for part, body in scheduled.items()}
    return made


def with_tenant_values(
    tenant: TenantSettings,
    cluster: RayClusterSettings,
    pools: tuple[NodePool, ...] = (),
    redis: RedisPlace | None = None,
    scheduling: Scheduling = NO_SCHEDULING,
    priorities: PriorityNames = NO_PRIORITIES,
    logs: LogsSettings | None = None,
) -> Body:
    """The RayCluster's body with all values that its tenant adds. Raises Problems as `ray_cluster` does."""
    account = tenant.service_account(cluster)
    return ray_cluster(with_tenant_defaults(tenant, cluster), pools, account, priorities, redis, scheduling, logs)


def redis_place(stack: StackSettings, tenant: TenantSettings) -> RedisPlace | None:
    """Where the GCS of the tenant's RayClusters stores its tables; None if the stack has no Redis."""
    connection = redis_connection(stack, tenant)
    if stack.redis is None or connection is None:
        return None
    return RedisPlace(connection, tenant.namespace_name, stack.redis.used_gateway)


def tenants_images_not_allowed(
    body: Body, registries: Sequence[str], logs: LogsSettings | None
) -> Iterator[tuple[Path, str]]:
    """The images of a RayCluster that come from none of the registries that its tenant may use.

    The image of the log collector is excluded: whoever provides the platform chooses it, not the tenant.
    """
    ours = logs.image if logs else None
    return ((path, image) for path, image in not_allowed(body, registries) if image != ours)
