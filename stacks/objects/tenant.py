"""What a tenant consists of: its components in the order of creation, each with all of its objects. Pure functions.

Which objects exist, in which order, and from which settings they follow is decided here and in the functions of
components/ that this file calls. Not included, because it is not known offline: Secrets, whose content is generated or
read from the cluster, and values of a RayCluster that an update alone knows (components/ray_cluster/component.py).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from components.access.manifests import ray_deployer, tenant_access
from components.job_template.manifests import beside_runs, resource_names
from components.network.manifests import RAY_DEPLOYER
from components.objects import Object, Part, below, sequentially
from components.ray_cluster.objects import certificates, ray_cluster_objects
from components.ray_job.manifests import ray_job_objects
from components.ray_service.manifests import ray_service_objects
from components.storage.manifests import objects as storage_objects
from components.tenant.settings import OF_OBJECTS, OF_RUNS, OF_RUNS_WITH_CODE, counted, namespace, object_counts, quota
from core.body import Body
from core.problems import Path
from stacks.cached import cached
from stacks.objects.access import admins_of, named_clusters, own_accounts
from stacks.objects.external_ray import checks
from stacks.objects.logs import log_collectors
from stacks.objects.monitoring import scraper_of
from stacks.objects.network import policies_of_clusters
from stacks.objects.ray_clusters import rendered, rendered_job, rendered_service, template_objects
from stacks.objects.redis import gateway_program
from stacks.objects.tenant_programs import idle_termination, run_history
from stacks.settings import StackSettings, TenantSettings

Parts = tuple[Part, ...]


@cached
def parts_of_tenant(stack: StackSettings, tenant: TenantSettings) -> Parts:
    """The tenant's components; places are below the tenant's settings. Raises Problems as `rendered` does."""
    if stack.platform:
        return workloads(stack, tenant)
    return (*prerequisites(stack, tenant), *workloads(stack, tenant), *programs(stack, tenant))


def tenant_namespace(tenant: TenantSettings) -> Object:
    body = namespace(
        tenant.namespace_name, tenant.name, tenant.pod_security, tenant.owner, tenant.cost_center, tenant.labels
    )
    return Object(f"namespace-{tenant.namespace_name}", body)


def prerequisites(stack: StackSettings, tenant: TenantSettings) -> Parts:
    """What RayClusters need in the namespace, and what limits them."""
    return _finished(stack, tenant, _prerequisites(stack, tenant))


@cached
def workloads(stack: StackSettings, tenant: TenantSettings) -> Parts:
    """RayClusters, RayJobs and RayServices: all that a stack creates on the platform of another stack."""
    return _finished(stack, tenant, _workloads(stack, tenant))


def programs(stack: StackSettings, tenant: TenantSettings) -> Parts:
    """What no RayCluster needs: the termination of idle ones, and the run history."""
    return _finished(stack, tenant, _programs(stack, tenant))


def _finished(stack: StackSettings, tenant: TenantSettings, parts: Iterable[Part]) -> Parts:
    return tuple(part.finished(tenant.namespace_name, stack.images.mirrors) for part in parts)


def _prerequisites(stack: StackSettings, tenant: TenantSettings) -> Iterator[Part]:
    yield Part("TenantAccess", "access", tuple(_access(stack, tenant)), after_platform=bool(tenant.job_templates))
    yield Part("NetworkPolicies", "network", tuple(_network(stack, tenant)))
    counts = tenant.quota is not None and bool(counted(tenant.quota))
    yield Part("Quota", "quota", tuple(_quota(tenant)), after_platform=counts)
    if tenant.storage:
        yield Part("Storage", "storage", tuple(_storage(tenant)))
    if program := gateway_program(stack, tenant):
        # The gateways beside the heads do not start without it.
        yield Part(None, "redis-gateway", (Object("program", program),))
    if tenant.job_templates:
        yield Part("JobTemplates", "job-templates", tuple(_job_templates(stack, tenant)), after_platform=True)
    if collectors := log_collectors(stack, tenant):
        # The collectors in the pods do not start without it.
        yield Part(None, "logs", (Object("config", collectors),))
    if tenant.ray_deployer:
        bodies = ray_deployer(tenant.ray_deployer, tenant.namespace_name)
        yield Part("RayDeployer", "ray-deployer", _at_once(bodies), ("rayDeployer",))


def _programs(stack: StackSettings, tenant: TenantSettings) -> Iterator[Part]:
    if bodies := idle_termination(stack, tenant):
        first = next(at for at, each in enumerate(tenant.clusters) if each.idle_termination_options)
        place: Path = ("clusters", first, "idleTerminationOptions")
        yield Part("IdleTermination", "idle-termination", tuple(sequentially(bodies)), place)
    if body := object_counts(tenant.quota, _others_make(tenant)):
        yield Part(None, "object-counts", (Object("resource-quota", body, ("quota",)),))
    if bodies := run_history(stack, tenant):
        yield Part("RunHistory", "run-history", tuple(sequentially(bodies)), ("runHistory",))


def _others_make(tenant: TenantSettings) -> Mapping[str, int]:
    """The most objects of those who may make any, beside the stack."""
    if tenant.admins or tenant.ray_deployer:
        return OF_OBJECTS
    templates = [each.name for each in tenant.job_templates]
    of_runs = OF_RUNS_WITH_CODE if any(each.local_code for each in tenant.job_templates) else OF_RUNS
    return of_runs if any(user.submit_jobs or any(map(user.runs, templates)) for user in tenant.users) else {}


def _at_once(bodies: Mapping[str, Body]) -> tuple[Object, ...]:
    return tuple(Object(name, body) for name, body in bodies.items())


def _access(stack: StackSettings, tenant: TenantSettings) -> Iterator[Object]:
    found = tenant_access(
        tenant.namespace_name,
        admins=admins_of(stack.access.cluster_admins, tenant),
        users=tenant.users,
        clusters=tuple(named_clusters(stack, tenant)),
        accounts=own_accounts(tenant),
        ingresses=tenant.network.ingress,
        templates=tuple(each.name for each in tenant.job_templates),
        with_code=tuple(each.name for each in tenant.job_templates if each.local_code),
    )
    of_accounts = {tenant.service_account(each): ("clusters", at) for at, each in enumerate(tenant.clusters)}
    found |= {f"prometheus-{body['kind'].lower()}": body for body in scraper_of(stack, tenant.namespace_name)}
    for name, body in found.items():
        account = body["metadata"]["name"] if body["kind"] == "ServiceAccount" else None
        yield Object(name, body, of_accounts[account] if account else ())


def _network(stack: StackSettings, tenant: TenantSettings) -> Iterator[Object]:
    places: dict[str | None, Path] = {None: ("network",)}
    places |= {name: ("clusterNames", at) for at, name in enumerate(tenant.cluster_names)}
    places |= {name: ("jobNames", at) for at, name in enumerate(tenant.job_names)}
    places |= {name: ("serviceNames", at) for at, name in enumerate(tenant.service_names)}
    places |= {cluster.name: ("clusters", at) for at, cluster in enumerate(tenant.clusters)}
    places |= {job.name: place for place, job in tenant.placed_jobs}
    places |= {service.name: ("services", at) for at, service in enumerate(tenant.services)}
    places |= {each.name: ("externalClusters", at) for at, each in enumerate(tenant.external_clusters)}
    for name, body in policies_of_clusters(stack, tenant):
        of_deployer = name is None and body["metadata"]["name"] == RAY_DEPLOYER
        yield Object(body["metadata"]["name"], body, ("rayDeployer", "network") if of_deployer else places[name])


def _quota(tenant: TenantSettings) -> Iterator[Object]:
    for name, body in quota(tenant.quota, tenant.limits_in_force).items():
        limits = name == "limit-range" and tenant.limits is not None
        yield Object(name, body, ("limits" if limits else "quota",))


def _storage(tenant: TenantSettings) -> Iterator[Object]:
    for at, storage in enumerate(tenant.storage):
        first: tuple[str, ...] = ()
        for part, body in storage_objects(storage, tenant.namespace_name).items():
            name = f"{storage.name}-{part}"
            yield Object(name, body, ("storage", at), first, protected=part == "claim" and storage.protected)
            first = (name,)


def _job_templates(stack: StackSettings, tenant: TenantSettings) -> Iterator[Object]:
    for at, template in enumerate(tenant.job_templates):
        own = template.job.own_cluster
        beside = [replace(each, name=f"{template.name}-{each.name}") for each in beside_runs(own)] if own else []
        place: Path = ("jobTemplates", at)
        yield from below(beside, (*place, "cluster"))
        sizes = resource_names(template)
        for name, body in template_objects(stack, tenant, template).items():
            of_size = ("sizes", size) if (size := sizes.get(name)) else ()
            yield Object(name, body, (*place, *of_size), after=certificates(beside))


def _workloads(stack: StackSettings, tenant: TenantSettings) -> Iterator[Part]:
    for at, cluster in enumerate(tenant.clusters):
        listed = ray_cluster_objects(cluster, rendered(stack, tenant, cluster))
        yield Part("RayCluster", cluster.name, tuple(listed), ("clusters", at))
    for at, (name, body) in enumerate(checks(stack, tenant).items()):
        yield Part("ExternalRayCluster", name, (Object("connection", body),), ("externalClusters", at))
    for at, job in enumerate(tenant.jobs):
        body = rendered_job(stack, tenant, job)
        if job.external_cluster:
            yield Part("SubmittedJob", job.name, (Object("submission", body),), ("jobs", at))
        else:
            yield Part("RayJob", job.name, tuple(ray_job_objects(job, body)), ("jobs", at))
    for at, service in enumerate(tenant.services):
        listed = ray_service_objects(service, rendered_service(stack, tenant, service))
        yield Part("RayService", service.name, tuple(listed), ("services", at))
