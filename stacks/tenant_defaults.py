"""Defaults of a tenant for its RayClusters, and the most that it may use at a time. Pure functions."""

from decimal import Decimal
from typing import Any

from components.ray_cluster.node_settings import WorkersSettings
from components.ray_cluster.settings import RayClusterSettings
from core.quantities import amount

from .settings import TenantSettings


def bounds(tenant: TenantSettings, resource: str) -> list[tuple[str, Decimal]]:
    """The limits of the tenant's `gpus`, `cpu` or `memory`, each with its name for people: quota, and its own queue.

    A shared queue does not limit a single tenant.
    """
    queue = tenant.queue.capability if tenant.queue and tenant.queue.name is None else None
    limits = [("quota", getattr(tenant.quota, resource, None)), ("queue", getattr(queue, resource, None))]
    return [(name, amount(str(value))) for name, value in limits if value is not None]


def with_tenant_defaults(tenant: TenantSettings, cluster: RayClusterSettings) -> RayClusterSettings:
    """A RayCluster with the tenant's defaults."""
    secrets = tuple(dict.fromkeys([*tenant.images.pull_secrets, *cluster.image_pull_secrets]))
    workers = tuple(_within_budget(tenant, each) for each in cluster.workers)
    return cluster.model_copy(update={"image_pull_secrets": secrets, "workers": workers})


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
