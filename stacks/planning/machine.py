"""Plans for programs: amounts are numbers, memory in bytes; null if a value is not set. Keys stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from components.queues.budget import on_nodes
from core.nodes import GPU_RESOURCE

from .overcommitment import overcommitments
from .plan import Plan, TenantPlan


def as_object(plan: Plan) -> dict[str, object]:
    """The plan of a stack."""
    gang = plan.largest_gang
    return {
        "pools": [
            {
                "pool": pool.pool,
                "nodes": pool.count,
                "gpuProduct": pool.gpu_product,
                "gpuHourPrice": pool.gpu_hour_price,
                **numbers(on_nodes([pool])),
            }
            for pool in plan.pools
        ],
        "tenants": [_tenant_object(tenant) for tenant in plan.tenants],
        "queues": [
            {
                "queue": queue.name,
                "namespaces": list(queue.namespaces),
                **{part: numbers(queue.settings.amounts(part)) for part in ("guarantee", "deserved", "capability")},
                "room": numbers({key: room.most for key, room in plan.rooms.get(queue.name, {}).items()}),
            }
            for queue in plan.queues
        ],
        "promised": numbers(plan.promised),
        "cost": _cost_object(plan.cost),
        "largestGang": {"cluster": gang.name, **numbers(gang.beside)} if gang else None,
        "leftOut": [{"cluster": each.owner, "group": each.group, "workers": number} for each, number in plan.left_out],
        "overcommitments": [{"rule": each.rule, "message": each.message} for each in overcommitments(plan)],
    }


def _tenant_object(tenant: TenantPlan) -> dict[str, object]:
    parts = {"starts": tenant.starts, "guaranteed": tenant.guaranteed, "greatest": tenant.greatest}
    return {
        "tenant": tenant.settings.name,
        **{key: numbers(usage) for key, usage in parts.items()},
        "inTurn": numbers(tenant.in_turn),
        "cost": _cost_object(tenant.cost),
        "clusters": [
            {
                "cluster": cluster.name,
                "queue": cluster.queue,
                "starts": numbers(cluster.starts),
                "alone": numbers(cluster.alone),
                "beside": numbers(cluster.beside),
                "groups": [
                    {
                        "group": group.workers.group,
                        "pools": list(group.pools),
                        **numbers(group.workers.usage),
                        "atFirst": group.workers.least,
                        "atMost": group.workers.most,
                        "nodesHold": group.held,
                    }
                    for group in cluster.groups
                ],
            }
            for cluster in tenant.clusters
        ],
    }


def numbers(usage: Mapping[str, Decimal]) -> dict[str, float | int | None]:
    """GPUs, CPUs and bytes of memory."""
    found: dict[str, float | int | None] = {}
    for key, resource in (("gpus", GPU_RESOURCE), ("cpu", "cpu"), ("memory", "memory")):
        value = usage.get(resource)
        found[key] = None if value is None else int(value) if value == int(value) else float(value)
    return found


def _cost_object(cost: tuple[float, float] | None) -> dict[str, float] | None:
    return {"always": cost[0], "atMost": cost[1]} if cost else None
