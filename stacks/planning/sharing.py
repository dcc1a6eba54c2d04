"""What all stack files promise that share a cluster. Pure functions."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from components.queues.budget import on_nodes
from components.tenant.demand import total
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Problem

from ..settings import StackSettings
from .machine import numbers
from .overcommitment import SAID_AT, more_than
from .plan import Plan
from .report import Report, Table, figure, money, triple

Planned = tuple[str, "StackSettings", Plan]
"""A stack's name, its settings, its plan."""

CURRENT = "the kubeconfig's current context"


class Shared:
    """Stacks that go to one cluster."""

    def __init__(self, cluster: str, stacks: Sequence[Planned]) -> None:
        """`cluster`: the context of the kubeconfig."""
        self.cluster, self.stacks = cluster, stacks
        self.pools, self.said_differently = _pools(stacks)
        self.promised = total(plan.promised for _, _, plan in stacks)
        self.starts = total(tenant.starts for _, _, plan in stacks for tenant in plan.tenants)

    @property
    def problems(self) -> list[Problem]:
        """What the nodes cannot keep of what the stacks promise together."""
        beyond = more_than(self.promised, on_nodes(self.pools))
        if not beyond:
            return []
        parts = ", ".join(f"{name} {figure(plan.promised, GPU_RESOURCE)}" for name, _, plan in self.stacks)
        message = (
            f"the stacks promise more together than the nodes have: {beyond} (GPUs by themselves: {parts}). Lower "
            "quotas, or add nodes"
        )
        return [Problem(SAID_AT, None, message, "promises-fit-nodes")]


def shared(stacks: Iterable[Planned]) -> list[Shared]:
    """The stacks by the cluster that they go to, which is the context that each names."""
    by_cluster: dict[str, list[Planned]] = {}
    for each in stacks:
        by_cluster.setdefault(each[1].kubernetes.context or CURRENT, []).append(each)
    return [Shared(cluster, there) for cluster, there in by_cluster.items()]


def report(there: Shared) -> Report:
    """The stacks of a cluster, for people."""
    rows = [
        (name, str(len(plan.tenants)), figure(starts, GPU_RESOURCE), triple(plan.promised), money(plan.cost))
        for name, _, plan in there.stacks
        for starts in [{GPU_RESOURCE: Decimal(0), **total(tenant.starts for tenant in plan.tenants)}]
    ]
    together = figure({GPU_RESOURCE: Decimal(0), **there.starts}, GPU_RESOURCE)
    rows.append(("together", str(sum(int(row[1]) for row in rows)), together, triple(there.promised), "-"))
    rows.append(("the nodes", "-", "-", triple(on_nodes(there.pools)), "-"))
    columns = ("Stack", "Tenants", "GPUs always", "Greatest: GPUs / CPUs / memory", "Cost per hour")
    said = [f"Overcommitted: {each.message}." for each in there.problems]
    said += [
        f"Pool {name} is not the same in all stack files; the one with most nodes counts."
        for name in there.said_differently
    ]
    return Report(f"Cluster: {there.cluster}", (Table("Promised by stacks", columns, tuple(rows)),), tuple(said))


def as_object(there: Shared) -> dict[str, object]:
    """The stacks of a cluster, for programs."""
    return {
        "context": None if there.cluster == CURRENT else there.cluster,
        "nodes": numbers(on_nodes(there.pools)),
        "starts": numbers(there.starts),
        "promised": numbers(there.promised),
        "stacks": [{"stack": name, "promised": numbers(plan.promised)} for name, _, plan in there.stacks],
        "overcommitments": [{"rule": each.rule, "message": each.message} for each in there.problems],
    }


def _pools(stacks: Iterable[Planned]) -> tuple[list[NodePool], list[str]]:
    """The pools by name, each once, and the names of those that are said differently."""
    found: dict[str, NodePool] = {}
    differ: list[str] = []
    for _, settings, _ in stacks:
        for pool in settings.nodes:
            known = found.get(pool.pool, pool)
            if known != pool and pool.pool not in differ:
                differ.append(pool.pool)
            found[pool.pool] = max(known, pool, key=lambda each: each.count)
    return list(found.values()), differ
