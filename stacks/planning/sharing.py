"""The promises of all stack files that share a cluster. Pure functions."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from components.queues.budget import on_nodes
from components.tenant.demand import total
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Problem
from stacks.commands.plan.report import WITHOUT_NODES, Report, Table, figure, money, numbers, triple
from stacks.planning.overcommitment import SETTING, more_than
from stacks.planning.plan import Plan
from stacks.settings import StackSettings

Planned = tuple[str, "StackSettings", Plan]
"""A stack's name, its settings, its plan."""

CURRENT = "the kubeconfig's current context"


class Shared:
    def __init__(self, cluster: str, stacks: Sequence[Planned]) -> None:
        """`cluster`: the context of the kubeconfig."""
        self.cluster, self.stacks = cluster, stacks
        self.pools, self.defined_differently = _pools(stacks)
        self.promised = total(plan.promised for _, _, plan in stacks)
        self.starts = total(tenant.starts for _, _, plan in stacks for tenant in plan.tenants)

    @property
    def problems(self) -> list[Problem]:
        """The promises of all stacks together that the nodes cannot provide; none if all stacks allow these."""
        beyond = more_than(self.promised, on_nodes(self.pools))
        if not beyond or all(plan.may_overcommit for _, _, plan in self.stacks):
            return []
        parts = ", ".join(f"{name} {figure(plan.promised, GPU_RESOURCE)}" for name, _, plan in self.stacks)
        message = (
            f"the stacks together promise more than the nodes have: {beyond} (GPUs of each: {parts}). Lower "
            "quotas, or add nodes"
        )
        return [Problem(SETTING, None, message, "promises-fit-nodes")]


def shared(stacks: Iterable[Planned]) -> list[Shared]:
    """The stacks by their cluster, which is the context that each names."""
    by_cluster: dict[str, list[Planned]] = {}
    for each in stacks:
        by_cluster.setdefault(each[1].kubernetes.context or CURRENT, []).append(each)
    return [Shared(cluster, planned) for cluster, planned in by_cluster.items()]


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
    columns = ("Stack", "Tenants", "GPUs always", "Maximum: GPUs / CPUs / memory", "Cost per hour")
    sentences = [] if there.pools else [WITHOUT_NODES]
    sentences += [f"Overcommitted: {each.message}." for each in there.problems]
    sentences += [
        f"Pool {name} differs between the stack files; the definition with most nodes counts."
        for name in there.defined_differently
    ]
    return Report(f"Cluster: {there.cluster}", (Table("Promised by stacks", columns, tuple(rows)),), tuple(sentences))


def as_object(shared_cluster: Shared) -> dict[str, object]:
    """The stacks of a cluster, for programs."""
    return {
        "context": None if shared_cluster.cluster == CURRENT else shared_cluster.cluster,
        "nodes": numbers(on_nodes(shared_cluster.pools)),
        "starts": numbers(shared_cluster.starts),
        "promised": numbers(shared_cluster.promised),
        "stacks": [{"stack": name, "promised": numbers(plan.promised)} for name, _, plan in shared_cluster.stacks],
        "overcommitments": [{"rule": each.rule, "message": each.message} for each in shared_cluster.problems],
    }


def _pools(stacks: Iterable[Planned]) -> tuple[list[NodePool], list[str]]:
    """The pools by name, each once, and the names of those whose definitions differ."""
    found: dict[str, NodePool] = {}
    differ: list[str] = []
    for _, settings, _ in stacks:
        for pool in settings.nodes:
            known = found.get(pool.pool, pool)
            if known != pool and pool.pool not in differ:
                differ.append(pool.pool)
            found[pool.pool] = max(known, pool, key=lambda each: each.count)
    return list(found.values()), differ
