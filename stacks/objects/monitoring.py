"""What a stack has for Prometheus. Pure functions."""

from collections import defaultdict

from components.kueue.manifests import METRICS_PORT as KUEUE_METRICS_PORT
from components.monitoring.manifests import monitoring_objects, own_prometheus
from components.monitoring.metrics import Job
from components.monitoring.prometheus import (
    ALERTMANAGER_PORT,
    ALERTMANAGER_SELECTOR,
    PORT,
    PROXIES,
    SELECTOR,
    reader_of_kueue,
    scraper,
)
from components.monitoring.targets import Monitored, targets
from components.network import manifests
from components.network.manifests import ANY_RAY_POD, HEAD_METRICS_PORTS, OPERATOR, OPERATOR_METRICS_PORT, Scraped
from components.ray_cluster.worker_groups import all_groups
from components.redis.connection import EXPORTER_PORT
from components.redis.connection import SELECTOR as REDIS
from components.redis_gateway.manifests import METRICS_PORT as GATEWAY_METRICS_PORT
from components.volcano.manifests import METRICS_PORTS as VOLCANO_METRICS_PORTS
from core.body import Body
from kuberay.ports import HEAD_PORTS, metrics_ports
from stacks.cached import cached
from stacks.objects.access import viewers_of
from stacks.objects.cml import without_kubernetes
from stacks.objects.ray_clusters import rendered
from stacks.objects.redis import redis_parts
from stacks.settings import StackSettings

_HTTPS = 443
"""Port of Cloudera ML's applications."""


@cached
def monitored(stack: StackSettings) -> Monitored:
    exported = [part for part in redis_parts(stack) if part.settings.exporter]
    volcano, kueue = (stack.scheduler.volcano, stack.scheduler.kueue) if stack.scheduler else (None, None)
    return Monitored(
        operator=stack.operator.namespace,
        watched=_watched(stack),
        gateway=bool(stack.redis and stack.redis.used_gateway),
        redis=tuple(part.namespace for part in exported),
        quorum=any(part.settings.mode == "managed" for part in exported),
        volcano=volcano.namespace if volcano and volcano.metrics else None,
        kueue=kueue.namespace if kueue and kueue.metrics else None,
        issuers=_issuers(stack),
        kubernetes=not without_kubernetes(stack),
        cml=_on_cml(stack),
        prices=_prices(stack),
    )


def _on_cml(stack: StackSettings) -> dict[tuple[str, str], int]:
    return {(each.project, each.name): each.workers for each in (stack.cml.clusters if stack.cml else ())}


def _watched(stack: StackSettings) -> tuple[str, ...]:
    """The stack's own Prometheus has no rights in namespaces of others, and an empty list would mean all."""
    if stack.prometheus_namespace is None:
        return stack.operator.watch_namespaces
    return tuple(tenant.namespace_name for tenant in stack.tenants) or (stack.operator.namespace,)


@cached
def objects_of_monitoring(stack: StackSettings) -> list[Body]:
    """All objects of monitoring, except the rights of the stack's own Prometheus in the namespaces of tenants and of a
    Redis with one of its own; none if the stack has none."""
    if stack.monitoring is None:
        return []
    admins = stack.access.cluster_admins
    viewers = (viewers_of(stack, tenant) for tenant in stack.tenants)
    namespaces = {tenant.name: tenant.namespace_name for tenant in stack.tenants}
    own = own_prometheus(stack.monitoring, monitored(stack), viewers, admins, _policies(stack), namespaces)
    apart = {tenant.namespace_name for tenant in stack.tenants}
    apart |= {part.namespace for part in redis_parts(stack) if part.own_namespace}
    names = dict.fromkeys(name for each in _scraped(stack) for name in each.namespaces)
    rights = [body for name in names if name not in apart for body in scraper_of(stack, name)]
    if stack.prometheus_namespace and monitored(stack).kueue:
        rights.append(reader_of_kueue(stack.prometheus_namespace))
    return [*own, *rights, *monitoring_objects(stack.monitoring, monitored(stack))]


def scraper_of(stack: StackSettings, namespace: str) -> list[Body]:
    """The rights of the stack's own Prometheus in a namespace; none if it scrapes nothing there."""
    own, scraped = stack.prometheus_namespace, [each for each in _scraped(stack) if namespace in each.namespaces]
    if own is None or not scraped:
        return []
    return scraper(namespace, own, services=any(each.services for each in scraped))


def _policies(stack: StackSettings) -> list[Body]:
    """The NetworkPolicies of the namespace of the stack's own Prometheus; none if it has none."""
    if stack.monitoring is None or stack.prometheus_namespace is None or not stack.network.policies:
        return []
    outside = (_HTTPS,) if _on_cml(stack) else ()
    made = manifests.prometheus_policies(stack.network, SELECTOR, PROXIES, PORT, _scraped(stack), outside)
    if sender := stack.monitoring.alertmanager:
        made += manifests.alertmanager_policies(
            stack.network, ALERTMANAGER_SELECTOR, ALERTMANAGER_PORT, SELECTOR, sender.egress
        )
    return made


@cached
def _scraped(stack: StackSettings) -> list[Scraped]:
    """The pods that the stack's own Prometheus scrapes; none if it has none."""
    found: list[Scraped] = []
    for target in targets(monitored(stack)) if stack.prometheus_namespace else ():
        each = Scraped(target.namespaces, *_pods_of(stack, target.job), services=target.of == "service")
        if each not in found:
            found.append(each)
    return found


def _pods_of(stack: StackSettings, job: Job) -> tuple[Body, tuple[int, ...]]:
    """The selector of the pods of a target, and the ports at which these have metrics."""
    match job:
        case Job.OPERATOR:
            return {"matchLabels": OPERATOR}, (OPERATOR_METRICS_PORT,)
        case Job.REDIS:
            return {"matchLabels": REDIS}, (EXPORTER_PORT,)
        case Job.VOLCANO_SCHEDULER | Job.VOLCANO_CONTROLLERS:
            return {}, VOLCANO_METRICS_PORTS
        case Job.KUEUE:
            return {}, (KUEUE_METRICS_PORT,)
    clusters = [rendered(stack, tenant, cluster)["spec"] for tenant in stack.tenants for cluster in tenant.all_clusters]
    ports = {HEAD_PORTS["metrics"], *HEAD_METRICS_PORTS, *(port for each in clusters for port in metrics_ports(each))}
    return ANY_RAY_POD, tuple(sorted(ports | ({GATEWAY_METRICS_PORT} if monitored(stack).gateway else set())))


def _issuers(stack: StackSettings) -> bool:
    clusters = (cluster for tenant in stack.tenants for cluster in tenant.all_clusters)
    certified = [part.settings.tls for part in redis_parts(stack)] + [cluster.tls for cluster in clusters]
    return any(tls and tls.issuer for tls in certified)


def _prices(stack: StackSettings) -> dict[float, tuple[str, ...]]:
    """By price of a GPU for an hour, the names of worker groups. Only names whose groups all have one price."""
    found: dict[str, set[float | None]] = defaultdict(set)
    for tenant in stack.tenants:
        for cluster in tenant.all_clusters:
            for group in all_groups(cluster, stack.nodes):
                if group.gpus:
                    found[group.name].add(group.pool.gpu_hour_price if group.pool else None)
    for on_cml in stack.cml.clusters if stack.cml else ():
        for each in on_cml.groups:
            if each.resources.gpus:
                found[each.name].add(stack.cml.gpu_hour_price if stack.cml else None)
    prices: dict[float, tuple[str, ...]] = {}
    for name, priced in sorted(found.items()):
        price = priced.pop()
        if price is not None and not priced:
            prices[price] = (*prices.get(price, ()), name)
    return prices
