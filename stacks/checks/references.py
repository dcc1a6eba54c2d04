"""Validation between the parts of a stack file: names, references, people, and pools that nothing tells apart. Pure
functions."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace

from pydantic.alias_generators import to_camel

from components.external_cluster.manifests import job_name
from components.job_template.manifests import size_name
from components.monitoring import prometheus
from components.monitoring.settings import AlertmanagerSettings
from components.network.rules import ingress_problems
from components.ray_service.llm import llm_setting_at
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Path, Problem, place, repeats
from core.suggestions import names_hint
from stacks.checks.namespaces import namespace_setting, problems_of_namespaces
from stacks.checks.rendered import problems_of_clusters
from stacks.checks.storage import problems_of_storage
from stacks.checks.tokens import problems_of_tokens
from stacks.objects.access import problems_of_admission, problems_of_hosts, unknown_cluster, unknown_template
from stacks.objects.external_ray import problems_between_tenants
from stacks.objects.logs import problems_of_logs
from stacks.objects.ownership import problems_of_split
from stacks.objects.platform_outputs import problems_of_platform
from stacks.objects.queues import problems_of_scheduling, queues_of
from stacks.objects.redis import problems_of_redis
from stacks.objects.stack import problems_of_objects
from stacks.planning.overcommitment import overcommitments
from stacks.planning.plan import plan_of
from stacks.settings import StackSettings, TenantSettings

_OF_A_NEW_NAMESPACE = {"owner", "cost_center", "labels", "pod_security"}
"""Settings of a tenant that are only possible for a namespace that the stack creates."""


def problems_of(stack: StackSettings, group: int | None = None) -> list[Problem]:
    """All problems between the parts of a stack. `group`: as in problems_of_clusters."""
    found = [
        *problems_of_platform(stack),
        *_names(stack),
        *problems_of_pools(stack),
        *_gpus_of_others(stack),
        *problems_of_namespaces(stack),
        *_not_made(stack),
        *_networks_of_all(stack),
        *problems_of_tokens(stack),
        *_people(stack),
        *_ingresses(stack),
        *_deployers(stack),
        *problems_of_redis(stack),
        *problems_of_storage(stack),
        *problems_between_tenants(stack),
        *problems_of_split(stack),
        *problems_of_scheduling(stack),
        *problems_of_admission(stack),
        *_monitoring(stack),
        *_log_store(stack),
        *_remote_jobs(stack),
        *problems_of_logs(stack),
        *problems_of_clusters(stack, group),
    ]
    if not found:
        found += problems_of_objects(stack)
    if stack.capacity.overcommitment == "error" and not found:
        found += overcommitments(plan_of(stack))
    return [_where_written(stack, each) for each in found]


def _where_written(stack: StackSettings, problem: Problem) -> Problem:
    """A problem of what `llm` of a service adds to its cluster, at `llm`."""
    match problem.path:
        case ("tenants", int(tenant), "services", int(at), "cluster", *rest):
            service = stack.tenants[tenant].services[at]
            if service.llm:
                return replace(problem, path=(*problem.path[:4], *llm_setting_at(service.cluster, tuple(rest))))
    return problem


def _names(stack: StackSettings) -> Iterator[Problem]:
    tenants = list(enumerate(stack.tenants))
    external = enumerate(stack.external_clusters)
    yield from _repeated((("externalClusters", at, "name"), each.name) for at, each in external)
    yield from _repeated((("jobs", at, "name"), job.name) for at, job in enumerate(stack.jobs))
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
            *((("tenants", index, "jobNames", at), name) for at, name in enumerate(tenant.job_names)),
            *((("tenants", index, "serviceNames", at), name) for at, name in enumerate(tenant.service_names)),
            # The Services of a RayCluster, a RayJob and a RayService of one name have one name, too.
            *((("tenants", index, *place, "name"), job.name) for place, job in tenant.placed_jobs),
            *((("tenants", index, "services", at, "name"), each.name) for at, each in enumerate(tenant.services)),
            *_external_names(index, tenant),
        ]
        yield from _repeated(named)
        yield from (problem.below(("tenants", index)) for problem in _names_of_sizes(tenant))
        yield from _repeated((("tenants", index, "storage", at, "name"), e.name) for at, e in enumerate(tenant.storage))


def _names_of_sizes(tenant: TenantSettings) -> Iterator[Problem]:
    """Sizes whose runs would be named as those of another template or size."""
    templates = {each.name: ("jobTemplates", at, "name") for at, each in enumerate(tenant.job_templates)}
    sizes = [((*path, "sizes", size), size_name(each.name, size)) for path, each, size, _ in tenant.placed_sizes]
    for path, name, first in repeats([*((path, name) for name, path in templates.items()), *sizes]):
        message = f"runs of this size would be named {name}-xxxxx, as those of {place(first)}: rename one of them"
        yield Problem(path, None, message, "repeated-name")


def _remote_jobs(stack: StackSettings) -> Iterator[Problem]:
    """Clusters of jobs that `up` submits, which the stack does not have."""
    on_cml = [each.name for each in stack.cml.clusters] if stack.cml else []
    external = [each.name for each in stack.external_clusters]
    for at, job in enumerate(stack.jobs):
        key, where, names = ("cmlCluster", "cml.clusters", on_cml)
        if job.external_cluster:
            key, where, names = ("externalCluster", "externalClusters", external)
        if job.cluster not in names:
            known = f"use one of {', '.join(names)}, or " if names else ""
            message = f"the stack has no cluster {job.cluster!r} in {where}: {known}add it there"
            yield Problem(("jobs", at, key), job.cluster, message, "unknown-cluster")


def _external_names(index: int, tenant: TenantSettings) -> Iterator[tuple[Path, str]]:
    """The names of external clusters, and of the Jobs that connect to them, which no RayJob's Job may have."""
    connect: dict[str, Path] = {}
    for at, cluster in enumerate(tenant.external_clusters):
        path = ("tenants", index, "externalClusters", at, "name")
        yield path, cluster.name
        connect.setdefault(cluster.name, path)
    for at, job in enumerate(tenant.jobs):
        if job.external_cluster:
            connect.setdefault(job.name, ("tenants", index, "jobs", at, "name"))
    yield from ((path, job_name(name)) for name, path in connect.items())


def _repeated(named: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    for path, name, first in repeats(named):
        message = f"{name!r} is used already, in {place(first[:-1])}: set a unique name"
        yield Problem(path, name, message, "repeated-name")


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
    for path, subject, first in repeats(subjects):
        message = (
            f"{subject!r} is named already, in {place(first)}: set all rights there, and remove the entry here "
            "(admins have all rights of users)"
        )
        yield Problem(path, subject, message, "repeated-subject")


def _users(tenant: TenantSettings) -> Iterator[Problem]:
    for at, user in enumerate(tenant.users):
        for position, name in enumerate(user.clusters or ()):
            yield from unknown_cluster(tenant, ("users", at, "clusters", position), name)
        for position, name in enumerate(user.job_templates or ()):
            yield from unknown_template(tenant, ("users", at, "jobTemplates", position), name)
        if user.submit_jobs and user.clusters == ():
            message = "submitJobs without a cluster to submit to: name one in clusters, or remove submitJobs"
            yield Problem(("users", at, "submitJobs"), True, message, "jobs-without-cluster")


def _ingresses(stack: StackSettings) -> Iterator[Problem]:
    for index, tenant in enumerate(stack.tenants):
        found = ingress_problems(tenant.network, stack.network)
        yield from (problem.below(("tenants", index, "network")) for problem in found)
    yield from problems_of_hosts(stack)


def _deployers(stack: StackSettings) -> Iterator[Problem]:
    """Connections that are opened where no NetworkPolicy closes any."""
    for index, tenant in enumerate(stack.tenants):
        closed = stack.network.policies and tenant.network.policies
        if tenant.ray_deployer and tenant.ray_deployer.network and not closed:
            message = (
                "the tenant has no NetworkPolicies, so that all its pods can be reached without this key: remove it, "
                "or remove policies: false of the network"
            )
            yield Problem(("tenants", index, "rayDeployer", "network"), None, message, "network-not-closed")


def _networks_of_all(stack: StackSettings) -> Iterator[Problem]:
    """Namespaces that may connect to all tenants, and are a tenant's."""
    owners = {tenant.namespace_name: tenant.name for tenant in stack.tenants}
    placed: list[tuple[Path, str | None, str]] = [
        (("network", "monitoring", at), name, "metrics") for at, name in enumerate(stack.network.monitoring)
    ]
    placed.append((("network", "ingressController"), stack.network.ingress_controller, "dashboards"))
    for path, name, ports in placed:
        if name in owners:
            message = (
                f"is the namespace of tenant {owners[name]!r}, whose pods could then connect to the {ports} of all "
                "tenants: name one of the platform"
            )
            yield Problem(path, name, message, "tenant-reaches-all")


def _not_made(stack: StackSettings) -> Iterator[Problem]:
    """Settings of a namespace that the stack does not create."""
    for index, tenant in enumerate(stack.tenants):
        for field in sorted(_OF_A_NEW_NAMESPACE & tenant.model_fields_set) if not tenant.create_namespace else ():
            message = (
                "createNamespace is false, so the stack does not change the namespace: remove this key, and label the "
                "namespace where it is created"
            )
            yield Problem(("tenants", index, to_camel(field)), getattr(tenant, field), message, "namespace-not-made")


def _monitoring(stack: StackSettings) -> Iterator[Problem]:
    """Metrics that nobody could read, a namespace that is a tenant's, and names of Services that are too long."""
    settings = stack.monitoring
    if settings is None or stack.platform:
        return
    if settings.own_namespace:
        yield from _names_of_proxies(stack, prometheus.LONGEST_TENANT, prometheus.service_of, "metrics")
        yield from _alertmanager(stack, settings.alertmanager)
        return
    if stack.network.policies and not stack.network.monitoring:
        message = (
            "no namespace may read metrics: set network.monitoring to the namespace of Prometheus, such as [monitoring]"
        )
        yield Problem(("monitoring",), None, message, "monitoring-unreachable")
    owner = next((each.name for each in stack.tenants if each.namespace_name == settings.namespace), None)
    if owner:
        message = (
            f"namespace {settings.namespace!r} is that of tenant {owner!r}, whose people could not be kept from these "
            "objects: set the namespace of Prometheus, or remove the key for the operator's"
        )
        yield Problem(("monitoring", "namespace"), settings.namespace, message, "reserved-namespace")


def _alertmanager(stack: StackSettings, settings: AlertmanagerSettings | None) -> Iterator[Problem]:
    """Receivers that could not be reached, and tenants that do not exist."""
    if settings is None:
        return
    path: Path = ("monitoring", "alertmanager")
    names = [tenant.name for tenant in stack.tenants]
    for at, receiver in enumerate(settings.receivers):
        for number, name in enumerate(receiver.tenants):
            if name not in names:
                message = f"there is no tenant {name!r}: {names_hint(name, names)}"
                yield Problem((*path, "receivers", at, "tenants", number), name, message, "unknown-tenant")
    if stack.network.policies and not settings.egress:
        message = (
            "no NetworkPolicy lets Alertmanager connect to its receivers: set egress to them, such as "
            "[{internet: true}] for PagerDuty and Slack"
        )
        yield Problem(path, None, message, "alerts-unreachable")


def _log_store(stack: StackSettings) -> Iterator[Problem]:
    """Pods that would reach the logs of other tenants, and names of Services that are too long."""
    own = stack.log_store_namespace
    if own is None:
        return

    from components.logs import store

    yield from _names_of_proxies(stack, store.LONGEST_TENANT, store.service_of, "logs")
    message = (
        "without NetworkPolicies, all pods would reach the logs of all tenants: set it to true, or mode to existing"
    )
    if not stack.network.policies:
        yield Problem(("network", "policies"), False, message, "logs-open")
    for index, tenant in enumerate(stack.tenants):
        if stack.network.policies and not tenant.network.policies:
            yield Problem(("tenants", index, "network", "policies"), False, message, "logs-open")
        for at, each in enumerate(tenant.network.egress):
            if each.namespace == own:
                reached = (
                    "is that of the log store, with the logs of all tenants: remove it, pods reach their own there"
                )
                yield Problem(("tenants", index, "network", "egress", at, "namespace"), own, reached, "logs-open")


def _names_of_proxies(
    stack: StackSettings, longest: int, service_of: Callable[[str], str], what: str
) -> Iterator[Problem]:
    for index, tenant in enumerate(stack.tenants):
        if len(tenant.namespace_name) > longest:
            message = (
                f"the Service {service_of(tenant.namespace_name)} that shows the tenant its {what} would have more "
                f"than 63 characters: set a namespace of at most {longest} characters"
            )
            yield Problem(namespace_setting(index, tenant), tenant.namespace_name, message, "proxy-name")


def problems_of_pools(stack: StackSettings) -> Iterator[Problem]:
    """Pools whose pods would run on each other's nodes: workers would have another size, or another GPU, than set."""
    first: dict[Hashable, NodePool] = {}
    for index, pool in enumerate(stack.nodes):
        other = first.setdefault(_marks(pool), pool)
        if other.pool != pool.pool:
            message = (
                f"nothing tells its nodes from those of pool {other.pool!r}, so that pods of one run on the other: set "
                "labels that only the nodes of each have, or make it one pool"
            )
            yield Problem(("nodes", index, "pool"), pool.pool, message, "pools-alike")


def _gpus_of_others(stack: StackSettings) -> Iterator[Problem]:
    """Amounts of NVIDIA's GPUs in quotas and queues of a stack whose nodes only have others, which would bound
    nothing."""
    resources = dict.fromkeys(pool.gpu_resource for pool in stack.nodes if pool.gpus)
    if not resources or GPU_RESOURCE in resources:
        return
    known = " and ".join(resources)
    for index, tenant in enumerate(stack.tenants):
        if tenant.quota and tenant.quota.gpus is not None:
            message = (
                f"it counts {GPU_RESOURCE}, and the nodes have {known}: set "
                f"quota.hard {{requests.{next(iter(resources))}: {tenant.quota.gpus}}} instead"
            )
            yield Problem(("tenants", index, "quota", "gpus"), tenant.quota.gpus, message, "gpus-of-nodes")
    for queue in queues_of(stack) if stack.scheduler else ():
        for part in ("guarantee", "deserved", "capability"):
            if (gpus := getattr(queue.settings, part).gpus) is not None:
                message = (
                    f"it counts {GPU_RESOURCE}, and the nodes have {known}: set "
                    f"resources {{{next(iter(resources))}: {gpus}}} instead"
                )
                yield Problem((*queue.path, part, "gpus"), gpus, message, "gpus-of-nodes")


def _marks(pool: NodePool) -> Hashable:
    """What pods select a pool's nodes by, and what keeps others away; a pod with GPUs runs on no node without
    GPUs of that resource."""
    taints = frozenset((each.key, each.value, each.effect) for each in pool.taints if each.effect != "PreferNoSchedule")
    return frozenset(pool.labels.items()), pool.gpu_product, taints, pool.gpu_resource if pool.gpus else None
