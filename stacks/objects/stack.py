"""All objects that the program creates for a stack, as it creates them, and the images of their pods. Pure functions.

The components call the same functions (components/*/manifests.py). A test compares their result with the objects that
the program registers (tests/unit/stacks/test_render.py). Not included, because they cannot be known offline:

- the manifests of KubeRay, Volcano and Kueue themselves, which come from their kustomize tree or file; the
  NetworkPolicies of their namespaces are included;
- Secrets, whose content is generated or read from the cluster;
- values that only an update knows: the prefix of a RayCluster's keys in Redis, the autoscaler's values, the stamps that
  identify old pods, and the annotations from which Pulumi's provider takes the name of the field manager.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from components.access.admission import restrictions
from components.access.manifests import cluster_access, ray_deployer, tenant_access
from components.bodies import Body, in_namespace
from components.kueue.manifests import kueue_image
from components.network.manifests import ingress
from components.priority_classes.settings import priority_classes
from components.queues.manifests import queue_objects
from components.ray_cluster.manifests import head_disruption_budget, head_ports, head_service
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.settings import JOB_LABEL
from components.ray_service.api_key import config_map
from components.ray_service.manifests import heads_disruption_budget
from components.redis.connection import BACKUP, RESTORE
from components.redis.manifests import namespace as redis_namespace
from components.redis.manifests import objects as redis_objects
from components.storage.manifests import objects as storage_objects
from components.tenant.settings import namespace, quota
from components.tls.manifests import authority_certificate
from components.volcano.manifests import volcano_images
from core.images import images_in, mirrored, with_mirrors
from core.problems import Path
from stacks.cached import once
from stacks.objects.access import admins_of, enforced, named_clusters, own_accounts, restricted
from stacks.objects.cml import installs_operator, without_kubernetes
from stacks.objects.external_ray import checks
from stacks.objects.logs import log_collectors
from stacks.objects.monitoring import objects_of_monitoring
from stacks.objects.network import operator_policies, policies_of_clusters, redis_policies, scheduler_policies
from stacks.objects.queues import queues_of
from stacks.objects.ray_clusters import rendered, rendered_job, rendered_service, template_objects
from stacks.objects.redis import redis_parts, redis_stateful_set
from stacks.objects.tenant_programs import idle_termination, run_history
from stacks.settings import StackSettings, TenantSettings

STACK = "stack"
"""Name of the Pulumi stack in the names of objects, if it does not matter: the stack file does not have it."""

Key = tuple[str, str]
"""Kind, and `<namespace>/<name>`, or the name alone for objects without a namespace."""


@dataclass(frozen=True)
class Manifest:
    """An object of a stack."""

    body: Body
    """With its namespace, and with the stack's mirrors of images."""

    path: Path
    """Its place in the stack file, below `ray-platform:`: `("tenants", 0, "quota")`."""


Manifests = Mapping[Key, Manifest]

Placed = Iterator[tuple[Path, Body]]


@once
def render(stack: StackSettings) -> Manifests:
    """`render_as` with the name STACK."""
    return render_as(stack, STACK)


def render_as(stack: StackSettings, name: str) -> Manifests:
    """All objects of a stack, or of the whole environment if it is split, except those listed in the module's
    docstring. On the platform of another stack these are RayClusters and the objects of each.

    `name`: the name of the Pulumi stack, which is in the names of objects.

    Raises Problems, with paths in the RayCluster's settings, as `rendered` does.
    """
    of_platform = {} if stack.platform or without_kubernetes(stack) else _by_key(stack, _of_platform(stack, name))
    of_tenants = (
        _by_key(stack, _of_tenant(stack, ("tenants", index), tenant)) for index, tenant in enumerate(stack.tenants)
    )
    return {**of_platform, **{key: each for found in of_tenants for key, each in found.items()}, **ray_clusters(stack)}


@once
def ray_clusters(stack: StackSettings) -> Manifests:
    """The RayClusters of a stack; no other object is rendered for them. Raises Problems as `render` does."""
    return _by_key(
        stack,
        (
            (("tenants", index, "clusters", at), in_namespace(rendered(stack, tenant, each), tenant.namespace_name))
            for index, tenant in enumerate(stack.tenants)
            for at, each in enumerate(tenant.clusters)
        ),
    )


def tenant_namespace(tenant: TenantSettings) -> Body:
    """The Namespace that is created for a tenant."""
    return namespace(
        tenant.namespace_name, tenant.name, tenant.pod_security, tenant.owner, tenant.cost_center, tenant.labels
    )


def _by_key(stack: StackSettings, found: Iterable[tuple[Path, Body]]) -> dict[Key, Manifest]:
    return {_key(body): Manifest(with_mirrors(body, stack.images.mirrors), path) for path, body in found}


def _key(body: Body) -> Key:
    metadata = body["metadata"]
    inside = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return body["kind"], f"{inside}{metadata['name']}"


def _of_platform(stack: StackSettings, name: str) -> Placed:
    owns_kinds, inside = stack.operator.install == "manifests", stack.operator.namespace
    for part, body in cluster_access(stack.access.cluster_admins, inside, owns_kinds=owns_kinds).items():
        yield ("operator",) if part.startswith("aggregate-") else ("access", "clusterAdmins"), body
    yield from ((("network",), body) for body in (*operator_policies(stack), *scheduler_policies(stack)))
    yield from ((("priorityClasses",), body) for body in priority_classes(stack.priorities))
    if stack.scheduler:
        for each in queue_objects(stack.scheduler.backend, queues_of(stack), stack.nodes):
            whole: Path = ("nodes",) if each.body["kind"] == "ResourceFlavor" else ("queues",)
            yield each.queue.path if each.queue else whole, each.body
    for body in restrictions(name, restricted(stack)).values():
        yield ("tenants",), body
    yield from ((("admissionPolicies",), body) for body in enforced(stack))
    yield from ((("monitoring",), body) for body in objects_of_monitoring(stack))
    yield from _of_redis(stack)


def _of_redis(stack: StackSettings) -> Placed:
    for part in redis_parts(stack):
        if part.own_namespace:
            yield ("redis", "namespace"), redis_namespace(part.namespace)
        bodies = (
            *redis_policies(stack, part),
            *redis_objects(part.settings, part.namespace, part.clusters),
            redis_stateful_set(stack, part),
        )
        for body in bodies:
            backup = body["metadata"]["name"] in (BACKUP, RESTORE)
            yield ("redis", "backup") if backup else ("redis",), in_namespace(body, part.namespace)


def _of_tenant(stack: StackSettings, path: Path, tenant: TenantSettings) -> Placed:
    namespace = tenant.namespace_name
    for at, cluster in enumerate(tenant.clusters):
        for key, body in _beside(stack, tenant, cluster):
            yield (*path, "clusters", at, *key), in_namespace(body, namespace)
        yield from _authority((*path, "clusters", at), namespace, cluster)
    for at, job in enumerate(tenant.jobs):
        yield (*path, "jobs", at), in_namespace(rendered_job(stack, tenant, job), namespace)
        if job.own_cluster and not job.own_cluster.head.evictable:
            budget = head_disruption_budget(job.own_cluster, JOB_LABEL)
            yield (*path, "jobs", at, "cluster", "head"), in_namespace(budget, namespace)
        yield from _authority((*path, "jobs", at, "cluster"), namespace, job.own_cluster)
    for at, service in enumerate(tenant.services):
        yield (*path, "services", at), in_namespace(rendered_service(stack, tenant, service), namespace)
        if service.api_key:
            yield (*path, "services", at, "apiKey"), in_namespace(config_map(service.name), namespace)
        if not service.own_cluster.head.evictable:
            yield (*path, "services", at, "cluster", "head"), in_namespace(heads_disruption_budget(service), namespace)
        yield from _authority((*path, "services", at, "cluster"), namespace, service.own_cluster)
    for at, body in enumerate(checks(stack, tenant).values()):
        yield (*path, "externalClusters", at), in_namespace(body, namespace)
    if stack.platform:
        return
    if tenant.create_namespace:
        yield path, tenant_namespace(tenant)
    for part, body in quota(tenant.quota, tenant.limits_in_force).items():
        limits = part == "limit-range" and tenant.limits is not None
        yield (*path, "limits" if limits else "quota"), in_namespace(body, namespace)
    if collectors := log_collectors(stack, tenant):
        yield ("logs",), in_namespace(collectors, namespace)
    for at, template in enumerate(tenant.job_templates):
        for body in template_objects(stack, tenant, template).values():
            yield (*path, "jobTemplates", at), in_namespace(body, namespace)
        yield from _authority((*path, "jobTemplates", at, "cluster"), namespace, template.job.own_cluster)
    for at, storage in enumerate(tenant.storage):
        for kind, body in storage_objects(storage, namespace).items():
            yield (*path, "storage", at), in_namespace(body, namespace) if kind == "claim" else body
    for body in idle_termination(stack, tenant).values():
        first = next(at for at, each in enumerate(tenant.clusters) if each.idle_termination_options)
        yield (*path, "clusters", first, "idleTerminationOptions"), in_namespace(body, namespace)
    for body in run_history(stack, tenant).values():
        yield (*path, "runHistory"), in_namespace(body, namespace)
    places: dict[str | None, Path] = {None: (*path, "network")}
    places |= {name: (*path, "clusterNames", at) for at, name in enumerate(tenant.cluster_names)}
    places |= {name: (*path, "jobNames", at) for at, name in enumerate(tenant.job_names)}
    places |= {name: (*path, "serviceNames", at) for at, name in enumerate(tenant.service_names)}
    places |= {cluster.name: (*path, "clusters", at) for at, cluster in enumerate(tenant.clusters)}
    places |= {job.name: (*path, *place) for place, job in tenant.placed_jobs}
    places |= {service.name: (*path, "services", at) for at, service in enumerate(tenant.services)}
    places |= {each.name: (*path, "externalClusters", at) for at, each in enumerate(tenant.external_clusters)}
    for name, body in policies_of_clusters(stack, tenant):
        yield places[name], in_namespace(body, namespace)
    yield from _access(stack, path, tenant)


def _access(stack: StackSettings, path: Path, tenant: TenantSettings) -> Placed:
    namespace = tenant.namespace_name
    found = tenant_access(
        namespace,
        namespace,
        admins=admins_of(stack.access.cluster_admins, tenant),
        users=tenant.users,
        clusters=tuple(named_clusters(stack, tenant)),
        accounts=own_accounts(tenant),
        ingresses=tenant.network.ingress,
        templates=tuple(each.name for each in tenant.job_templates),
    )
    of_accounts = {tenant.service_account(each): (*path, "clusters", at) for at, each in enumerate(tenant.clusters)}
    for body in found.values():
        account = body["metadata"]["name"] if body["kind"] == "ServiceAccount" else None
        yield of_accounts[account] if account else path, body
    if tenant.ray_deployer:
        for body in ray_deployer(tenant.ray_deployer, namespace).values():
            yield (*path, "rayDeployer"), in_namespace(body, namespace)


def _beside(stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings) -> Placed:
    """The objects that belong to a RayCluster; paths in its settings."""
    if not cluster.head.evictable:
        yield ("head",), head_disruption_budget(cluster)
    if cluster.ingress:
        spec = rendered(stack, tenant, cluster)["spec"]
        service, port = head_service(cluster.name, spec), head_ports(spec)["dashboard"]
        yield ("ingress",), ingress(cluster.name, service, cluster.ingress, port)


def _authority(path: Path, namespace: str, cluster: RayClusterSettings | None) -> Placed:
    """The Certificate of the authority of a RayCluster at `path`, if cert-manager makes it."""
    if cluster and cluster.tls and cluster.tls.issuer:
        yield (*path, "tls"), in_namespace(authority_certificate(cluster.name, cluster.tls.issuer), namespace)


def images_of(stack: StackSettings) -> set[str]:
    """All images that the pods of a stack use, by the names in the pods: with the stack's mirrors.

    The containers that KubeRay adds to pods use the image of the Ray container. The operator's image is the one of
    KubeRay's own kustomize tree unless the settings set another; a tree of another location is not rendered for it.
    """
    return set(users_of_images(stack))


def users_of_images(stack: StackSettings) -> dict[str, list[str]]:
    """The images of a stack as `images_of`, each with the objects whose pods use it: `RayCluster team-a/training`."""
    found: dict[str, list[str]] = {}
    for program, images in _images_of_programs(stack).items():
        for image in images:
            found.setdefault(mirrored(image, stack.images.mirrors), []).append(program)
    for (kind, name), each in render(stack).items():
        # These use the names of the mirrors already.
        for image in dict.fromkeys(image for _, image in images_in(each.body)):
            found.setdefault(image, []).append(f"{kind} {name}")
    return found


def _images_of_programs(stack: StackSettings) -> dict[str, list[str]]:
    """The images of the programs that the stack installs from their own manifests, by the names of the programs."""
    found: dict[str, list[str]] = {}
    if installs_operator(stack):
        found["KubeRay"] = [_operator(stack)]
    if stack.scheduler and stack.scheduler.volcano and stack.scheduler.volcano.install == "manifests":
        found["Volcano"] = volcano_images(stack.scheduler.volcano.version)
    if stack.scheduler and stack.scheduler.kueue and stack.scheduler.kueue.install == "manifests":
        found["Kueue"] = [kueue_image(stack.scheduler.kueue.version)]
    return found


def _operator(stack: StackSettings) -> str:
    return stack.operator.image or f"quay.io/kuberay/operator:v{stack.operator.version}"
