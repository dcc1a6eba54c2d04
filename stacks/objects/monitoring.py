"""What a stack has for Prometheus. Pure functions."""

from collections import defaultdict

from components.monitoring.manifests import monitoring_objects
from components.monitoring.targets import Monitored
from components.ray_cluster.worker_groups import all_groups
from core.body import Body
from stacks.cached import cached
from stacks.objects.redis import redis_parts
from stacks.settings import StackSettings


@cached
def monitored(stack: StackSettings) -> Monitored:
    exported = [part for part in redis_parts(stack) if part.settings.exporter]
    volcano, kueue = (stack.scheduler.volcano, stack.scheduler.kueue) if stack.scheduler else (None, None)
    return Monitored(
        operator=stack.operator.namespace,
        watched=stack.operator.watch_namespaces,
        gateway=bool(stack.redis and stack.redis.used_gateway),
        redis=tuple(part.namespace for part in exported),
        quorum=any(part.settings.mode == "managed" for part in exported),
        volcano=volcano.namespace if volcano and volcano.metrics else None,
        kueue=kueue.namespace if kueue and kueue.metrics else None,
        issuers=_issuers(stack),
        prices=_prices(stack),
    )


@cached
def objects_of_monitoring(stack: StackSettings) -> list[Body]:
    """All objects of monitoring; none if the stack has none."""
    return list(monitoring_objects(stack.monitoring, monitored(stack))) if stack.monitoring else []


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
    prices: dict[float, tuple[str, ...]] = {}
    for name, priced in sorted(found.items()):
        price = priced.pop()
        if price is not None and not priced:
            prices[price] = (*prices.get(price, ()), name)
    return prices
