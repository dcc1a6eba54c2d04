"""Advice on RayServices and their models. Pure functions."""

from collections.abc import Iterator

from components.ray_cluster.rules import drain_timeouts
from components.ray_service.settings import BESIDE_REPLICAS, RayServiceSettings
from core.problems import Finding, Path
from core.stack_file import PREFIX
from core.types import seconds
from stacks.settings import StackSettings, TenantSettings


def advice_on_services(stack: StackSettings) -> Iterator[Finding]:
    yield from _models_that_do_not_scale(stack)
    yield from _services_that_end_early(stack)
    yield from _closed_services(stack)
    yield from _models_out_of_reach(stack)


def _services(stack: StackSettings) -> Iterator[tuple[Path, TenantSettings, RayServiceSettings]]:
    """All RayServices, each with its place in the stack file and its tenant."""
    for at, tenant in enumerate(stack.tenants):
        for number, service in enumerate(tenant.services):
            yield (f"{PREFIX}tenants", at, "services", number), tenant, service


def _models_that_do_not_scale(stack: StackSettings) -> Iterator[Finding]:
    """Models whose further replicas would wait for workers that nobody adds."""
    for path, _, service in _services(stack):
        if (llm := service.llm) and llm.most > llm.replicas and not service.cluster.scales:
            message = "each replica needs a worker, and the cluster does not scale: remove it, or let the cluster scale"
            yield Finding((*path, "llm", "maxReplicas"), llm.max_replicas, message, "no-autoscaler")


def _services_that_end_early(stack: StackSettings) -> Iterator[Finding]:
    """Services whose workers end before Serve has moved their requests."""
    for path, _, service in _services(stack):
        shortest = service.shortest_drain
        for at, drain in drain_timeouts(service.cluster):
            if shortest is None or seconds(drain) >= min(shortest, service.shortest_spot_drain or shortest):
                continue
            message = (
                f"requests are lost when a worker has to go: Serve needs {shortest} s to move them. Set {shortest}s or "
                "more, or remove it"
            )
            if not service.llm and (left := seconds(drain) - BESIDE_REPLICAS) > 0:
                message += (
                    f". If the nodes have less time, set graceful_shutdown_timeout_s of each deployment to {left} or "
                    "less: longer requests are cut"
                )
            yield Finding((*path, "cluster", *at), drain, message, "short-drain")


def _closed_services(stack: StackSettings) -> Iterator[Finding]:
    """Services that nobody outside of their RayCluster may ask."""
    for path, tenant, service in _services(stack):
        network = tenant.network
        closed = stack.platform is None and stack.network.policies and network.policies
        if closed and not (network.serve_from or network.ingress):
            message = (
                "no NetworkPolicy allows connections from outside its RayCluster: set network.serveFrom of the tenant"
            )
            yield Finding((*path, "name"), service.name, message, "closed-service")


def _models_out_of_reach(stack: StackSettings) -> Iterator[Finding]:
    """Models of a hub or a bucket that pods may not connect to."""
    for path, tenant, service in _services(stack):
        # The platform's stack decides about the network of a tenant with a stack of its own.
        known = stack.platform is None and stack.network.policies and tenant.network.policies
        closed = known and not tenant.network.egress
        if (llm := service.llm) is None or not closed:
            continue
        key, source = ("source", llm.source) if llm.source else ("model", llm.model)
        if not source.startswith(("/", "./")):
            message = (
                f"the pods download {source!r}, and the tenant's network has no egress: set network.egress, for "
                "example {internet: true}, or source to a folder"
            )
            yield Finding((*path, "llm", key), source, message, "closed-hub")
