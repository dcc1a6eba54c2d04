"""A plan as tables and sentences, for all output formats; and as an object for programs. And what the clusters on
Cloudera ML ask of its quotas, which no file knows.

For programs amounts are numbers, memory in bytes; null if a value is not set. Keys stay the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal
from typing import Any

from components.capacity.placement import RESOURCES
from components.cml.settings import CmlRayClusterSettings
from components.queues.budget import on_nodes
from components.tenant.demand import Usage, total
from components.tenant.settings import hard
from core.nodes import GPU_RESOURCE, gpu_names, gpus_of
from core.problems import few
from core.quantities import amount, shown
from core.types import duration_of
from stacks.planning.overcommitment import MOST_NAMED, more_than, overcommitments
from stacks.planning.plan import Plan, TenantPlan, TooSmall
from stacks.settings import StackSettings

NONE = "-"

_UNITS = "GPUs / CPUs / memory"

WITHOUT_NODES = "What fits is unknown, because no ray-platform:nodes is set: add your pools of nodes."


@dataclass(frozen=True)
class Table:
    """Rows under a title; the first column names the row, the others are figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Report:
    title: str
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]

    plan: Plan | None = None
    """For the drawing of its nodes."""

    text: str = ""
    """Lines to copy, after the sentences."""


def report(name: str, plan: Plan) -> Report:
    made = [_pools(plan), _groups(plan), _clusters(plan), _runs(plan), _tenants(plan), _queues(plan)]
    return Report(name, tuple(table for table in made if table.rows), tuple(_sentences(plan)), plan)


def figure(usage: Mapping[str, Decimal], resource: str) -> str:
    """An amount for people; memory in Gi, rounded down: whole ones, but less than 10 with a decimal place."""
    value = _usage_of(usage, resource)
    if value is None:
        return NONE
    if resource != "memory" or 0 < value < 2**30 / 10:
        return shown(resource, value)
    rounded = (value / 2**30).quantize(Decimal("0.1" if value < 10 * 2**30 else 1), ROUND_DOWN)
    return f"{rounded.normalize():f}Gi"


def _usage_of(usage: Mapping[str, Decimal], resource: str) -> Decimal | None:
    """An amount; of GPUs those of all vendors together. None: it is not set."""
    return gpus_of(usage) if resource == GPU_RESOURCE and gpu_names(usage) else usage.get(resource)


def triple(usage: Usage) -> str:
    """GPUs, CPUs and memory in one cell."""
    return " / ".join(figure(usage, resource) for resource in RESOURCES)


def money(cost: tuple[float, float] | None) -> str:
    return f"{cost[0]:.2f} to {cost[1]:.2f}" if cost else NONE


def _pools(plan: Plan) -> Table:
    taken = plan.started.gpus_by_pool()
    rows = tuple(
        (
            pool.pool,
            str(pool.count),
            triple({resource: value / pool.count for resource, value in on_nodes([pool]).items()}),
            triple(on_nodes([pool])),
            pool.gpu_product or NONE,
            shown(GPU_RESOURCE, taken[pool.pool]),
            NONE if pool.gpu_hour_price is None else f"{pool.gpu_hour_price:.2f}",
        )
        for pool in plan.pools
    )
    columns = ("Pool", "Nodes", "One node", "All nodes", "Product", "GPUs always taken", "Price per GPU-hour")
    return Table(f"Pools ({_UNITS})", columns, rows)


_DRAIN = "Time to drain (drainTimeout)"


def _groups(plan: Plan) -> Table:
    rows = []
    for cluster in plan.clusters:
        for group in cluster.groups:
            workers = group.workers
            most = "any" if workers.most is None else str(workers.most)
            held = str(group.held) if group.pools else "0, no pool has such nodes" if plan.pools else NONE
            one = triple(_zeros(workers.usage))
            drain = NONE if workers.drain is None else duration_of(workers.drain)
            rows.append((cluster.name, workers.group, one, str(workers.least), most, held, drain))
    columns = ("RayCluster", "Group", "One worker", "At first", "At most", "Nodes hold", _DRAIN)
    return Table(f"Heads and worker groups ({_UNITS})", columns, tuple(rows))


def _clusters(plan: Plan) -> Table:
    rows = []
    for each in plan.clusters:
        usages = (_zeros(each.starts), *((each.alone, each.beside) if plan.pools else ({}, {})))
        rows.append((each.name, each.queue or NONE, *(figure(usage, GPU_RESOURCE) for usage in usages)))
    columns = ("RayCluster", "Queue", "GPUs at first", "Maximum", "Maximum while others start")
    return Table("RayClusters: what can run at once", columns, tuple(rows))


def _runs(plan: Plan) -> Table:
    rows = []
    for each in plan.runs:
        usages = (_zeros(each.starts), each.alone if plan.pools else {})
        gpus = (figure(usage, GPU_RESOURCE) for usage in usages)
        rows.append((each.template, each.size or "its own", *gpus, triple(_zeros(each.starts))))
    columns = ("Job template", "Size", "GPUs at first", "Maximum", "All at first")
    return Table(f"One run of each size ({_UNITS})", columns, tuple(rows))


def _tenants(plan: Plan) -> Table:
    rows = [
        (
            each.settings.name,
            triple(_zeros(each.starts)),
            triple(each.guaranteed),
            triple(each.maximum if plan.pools else {}),
            _quota(each),
            figure(each.in_file_order if plan.pools else {}, GPU_RESOURCE),
            money(each.cost),
        )
        for each in plan.tenants
    ]
    if len(plan.tenants) > 1:
        starts = total(tenant.starts for tenant in plan.tenants)
        guaranteed = total(tenant.guaranteed for tenant in plan.tenants)
        in_file_order = total(tenant.in_file_order for tenant in plan.tenants)
        sums = (triple(_zeros(starts)), triple(guaranteed), triple(plan.promised if plan.pools else {}))
        grown = figure(in_file_order if plan.pools else {}, GPU_RESOURCE)
        rows.append(("together", *sums, NONE, grown, money(plan.cost)))
    columns = ("Tenant", "Always", "Guaranteed", "Maximum", "Quota", "GPUs in file order", "Cost per hour")
    return Table(f"Tenants ({_UNITS})", columns, tuple(rows))


def _quota(tenant: TenantPlan) -> str:
    entries = hard(tenant.settings.quota) if tenant.settings.quota else {}
    of_gpus = {
        name: amount(most) for entry, most in entries.items() if (name := entry.removeprefix("requests.")) != entry
    }
    return " / ".join(
        [figure(of_gpus, GPU_RESOURCE), *(entries.get(f"requests.{each}", NONE) for each in RESOURCES[1:])]
    )


def _queues(plan: Plan) -> Table:
    rows = []
    for queue in plan.queues:
        amounts = [queue.settings.amounts(part) for part in ("guarantee", "deserved", "capability")]
        room = {resource: each.most for resource, each in plan.rooms.get(queue.name, {}).items()}
        users = ", ".join(queue.namespaces) or NONE
        rows.append((queue.name, *(triple(usage) for usage in (*amounts, room)), users))
    columns = ("Queue", "Guarantee", "Deserved", "Capability", "The most it ever has", "Namespaces")
    return Table(f"Queues ({_UNITS})", columns, tuple(rows))


def _sentences(plan: Plan) -> Iterable[str]:
    number = len(plan.clusters)
    if number and not plan.pools:
        yield WITHOUT_NODES
        yield from map(_too_small, plan.too_small)
        return
    if number:
        yield _verdict(plan)
    if number and not plan.left_out and not plan.too_small:
        yield f"All {number} RayClusters can start at once." if number > 1 else "The RayCluster can start."
    yield from map(_too_small, plan.too_small)
    yield from (f"Overcommitted: {each.message}." for each in overcommitments(plan))
    yield from _quotas_beyond_nodes(plan)
    short = [each for each in plan.tenants if gpus_of(each.in_file_order) < gpus_of(each.maximum)]
    if number and not short:
        yield "All tenants can have their maximum number of GPUs at once."
    if short:
        gets = [
            f"{each.settings.name} gets {figure(each.in_file_order, GPU_RESOURCE)} of its "
            f"{figure(each.maximum, GPU_RESOURCE)}"
            for each in short
        ]
        yield f"If tenants grow in the order of the file: {few(gets, MOST_NAMED)} GPUs."
    if (gang := plan.largest_gang) and gpus_of(gang.beside):
        gpus = figure(gang.beside, GPU_RESOURCE)
        yield f"Largest gang: {gpus} GPUs, by {gang.name}, while all others run what they start with."
    yield from _strays(plan)
    if plan.cost:
        yield f"GPUs cost {money(plan.cost)} per hour, by what always runs and what can run at once."
    elif any(pool.gpus for pool in plan.pools):
        yield "Cost is unknown: set gpuHourPrice of the pools in nodes, or --gpu-hour-price."


def _quotas_beyond_nodes(plan: Plan) -> Iterator[str]:
    there = sum(pool.count * pool.gpus for pool in plan.pools)
    for each in plan.tenants:
        gpus = each.settings.quota.gpus if each.settings.quota else None
        if plan.pools and gpus is not None and int(gpus) > there:
            yield f"The quota of {each.settings.name} bounds nothing: {gpus} GPUs, and all nodes have {there}."


def _verdict(plan: Plan) -> str:
    """The answer in one line."""
    if plan.left_out or plan.too_small:
        return "Does not fit: not all RayClusters can start at once."
    if beyond := more_than(plan.promised, on_nodes(plan.pools)):
        return f"Fits at first, but not with all tenants at their maximum: {beyond}."
    if any(gpus_of(each.in_file_order) < gpus_of(each.maximum) for each in plan.tenants):
        return "Fits at first, but not with all tenants at their maximum."
    return "Fits, also with all tenants at their maximum."


def _too_small(each: TooSmall) -> str:
    amounts = (
        f"{entry} {shown(entry, most)} of {shown(entry, each.needed[entry])}" for entry, most in each.most.items()
    )
    return (
        f"Not at once: {each.name} has less than its RayClusters start with ({', '.join(amounts)}): if they start in "
        f"the order of the file, others have to end before {few(each.waiting, MOST_NAMED)} can start."
    )


def _strays(plan: Plan) -> Iterable[str]:
    """Workers with GPUs that may run on several pools, which may be unintended."""
    found: dict[tuple[str, ...], list[str]] = {}
    for cluster in plan.clusters:
        for group in cluster.groups:
            if group.workers.gpus and len(group.pools) > 1:
                found.setdefault(group.pools, []).append(group.workers.group)
    for pools, groups in found.items():
        yield (
            f"Workers of {', '.join(dict.fromkeys(groups))} may run on any of {', '.join(pools)}: if this is "
            "unintended, set a gpuProduct, labels or taints that distinguish these pools."
        )


def _zeros(usage: Usage) -> Usage:
    """The amounts of the resources of nodes, 0 for those that are not set."""
    return {resource: _usage_of(usage, resource) or Decimal(0) for resource in RESOURCES}


def as_object(plan: Plan) -> dict[str, object]:
    gang = plan.largest_gang
    return {
        "pools": [
            {
                "pool": pool.pool,
                "nodes": pool.count,
                "gpuResource": pool.gpu_resource,
                "gpuProduct": pool.gpu_product,
                "gpuHourPrice": pool.gpu_hour_price,
                **numbers(on_nodes([pool])),
            }
            for pool in plan.pools
        ],
        "tenants": [_tenant_object(tenant) for tenant in plan.tenants],
        "runs": [
            {"template": each.template, "size": each.size, "starts": numbers(each.starts), "alone": numbers(each.alone)}
            for each in plan.runs
        ],
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
        "tooSmall": [_too_small_object(each) for each in plan.too_small],
        "leftOut": [{"cluster": each.owner, "group": each.group, "workers": number} for each, number in plan.left_out],
        "overcommitments": [{"rule": each.rule, "message": each.message} for each in overcommitments(plan)],
    }


def _too_small_object(each: TooSmall) -> dict[str, object]:
    amounts = {entry: {"needed": float(each.needed[entry]), "most": float(most)} for entry, most in each.most.items()}
    return {"limit": each.name, "amounts": amounts, "waiting": list(each.waiting)}


def _tenant_object(tenant: TenantPlan) -> dict[str, object]:
    parts = {"starts": tenant.starts, "guaranteed": tenant.guaranteed, "maximum": tenant.maximum}
    return {
        "tenant": tenant.settings.name,
        **{key: numbers(usage) for key, usage in parts.items()},
        "inFileOrder": numbers(tenant.in_file_order),
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
                        "drainSeconds": group.workers.drain,
                    }
                    for group in cluster.groups
                ],
            }
            for cluster in tenant.clusters
        ],
    }


def numbers(usage: Mapping[str, Decimal]) -> dict[str, float | int | None]:
    """GPUs, CPUs and bytes of memory."""
    resources = {"gpus": GPU_RESOURCE, "cpu": "cpu", "memory": "memory"}
    return {key: plain(_usage_of(usage, resource)) for key, resource in resources.items()}


def plain(value: Decimal | None) -> float | int | None:
    """A number for JSON, whole if it is."""
    return None if value is None else int(value) if value == int(value) else float(value)


def _cost_object(cost: tuple[float, float] | None) -> dict[str, float] | None:
    return {"always": cost[0], "atMost": cost[1]} if cost else None


def with_cml(report: Report, stack: StackSettings, price: float | None) -> Report:
    """The report, with a table of these clusters if the stack has any."""
    rows = tuple(
        (
            each["cluster"],
            ", ".join(each["projects"]),
            *(f"{each[key]:g}" for key in ("workers", "gpus", "cpu", "memory")),
            NONE if each["cost"] is None else f"{each['cost']:.2f}",
        )
        for each in cml_as_objects(stack, price)
    )
    columns = ("Cluster", "Projects", "Workers", "GPUs", "CPUs", "Memory in GB", "Cost per hour")
    table = Table("Ray clusters on Cloudera ML: head and workers together", columns, rows)
    return replace(report, tables=(*report.tables, table)) if rows else report


def cml_as_objects(stack: StackSettings, price: float | None = None) -> list[dict[str, Any]]:
    """The same for programs. `price`: of a GPU in an hour, if the stack file sets none."""
    if stack.cml is None:
        return []
    own = stack.cml.gpu_hour_price
    return [_cml_cluster(each, price if own is None else own) for each in stack.cml.clusters]


def _cml_cluster(cluster: CmlRayClusterSettings, price: float | None) -> dict[str, Any]:
    head = cluster.resources_of_head
    running = 0 if cluster.suspend else 1
    workers = [(running * group.replicas, group.resources) for group in cluster.groups]
    gpus = sum(count * resources.gpus for count, resources in workers)
    return {
        "cluster": cluster.name,
        "projects": list(cluster.projects),
        "workers": sum(count for count, _ in workers),
        "gpus": gpus,
        "cost": None if price is None else gpus * price,
        "cpu": running * head.cpu + sum(count * resources.cpu for count, resources in workers),
        "memory": running * head.memory + sum(count * resources.memory for count, resources in workers),
    }
