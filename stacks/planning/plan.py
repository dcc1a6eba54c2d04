"""What a stack's nodes hold of what its file promises.

It knows what the stack file says and nothing else: other pods on the nodes, and RayClusters that people make by other
means, are not counted. `reserve` of workers and `nodes`, which are allocatable amounts, leave room for daemons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from components.capacity.eligibility import eligible
from components.capacity.placement import Accounts, Nodes, Workers, held
from components.nodes import GPU_RESOURCE, NodePool
from components.problems import Problem
from components.queues.queue import Queue
from components.tenant.demand import Usage, total

from ..queues import queue_of, queues_of
from .demands import Rooms, accounts_of, clusters_of, fresh, redis_pods, rooms_of
from .overcommitment import overcommitments

if TYPE_CHECKING:
    from ..settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class GroupPlan:
    """A worker group, or the head."""

    workers: Workers

    pools: tuple[str, ...]
    """Whose nodes it may run on."""

    held: int
    """The most workers that the nodes hold, if they had nothing else."""


@dataclass(frozen=True)
class ClusterPlan:
    """A RayCluster."""

    name: str
    """`<namespace>/<name>`."""

    queue: str | None

    groups: tuple[GroupPlan, ...]

    starts: Usage
    """What it starts with."""

    alone: Usage
    """What it has at its greatest, if nothing else ran."""

    beside: Usage
    """What it has at its greatest beside what all others start with. Its GPUs are the largest gang it can run."""


@dataclass(frozen=True)
class TenantPlan:
    """A tenant."""

    settings: TenantSettings

    clusters: tuple[ClusterPlan, ...]

    starts: Usage
    """What its RayClusters start with: what it always has."""

    guaranteed: Usage
    """What its own queue keeps free for it; empty where it has none."""

    greatest: Usage
    """What it has at most, if nothing else ran: within its quota, its queues and the nodes."""

    in_turn: Usage
    """What it has if tenants grow to their greatest in the order of the file, beside what all start with."""

    cost: tuple[float, float] | None
    """Per hour, for the GPUs that it starts with, and at its greatest; None where no price is said."""


@dataclass(frozen=True)
class Plan:
    """A stack against its nodes."""

    pools: tuple[NodePool, ...]

    tenants: tuple[TenantPlan, ...]

    queues: tuple[Queue, ...]
    rooms: Rooms

    started: Nodes
    """The nodes with what all RayClusters start with."""

    left_out: tuple[tuple[Workers, int], ...]
    """What finds no room to start, with how many."""

    cost: tuple[float, float] | None
    """Per hour, for GPUs: what always runs, and what runs when tenants have grown in turn."""

    promised: Usage
    """What tenants may have at most, all together, where the nodes do not bound it. A queue counts once."""

    overcommitments: tuple[Problem, ...] = ()

    @property
    def largest_gang(self) -> ClusterPlan | None:
        """The RayCluster that can hold most GPUs beside what all others start with; the first of equals."""
        clusters = [cluster for tenant in self.tenants for cluster in tenant.clusters]
        return max(clusters, key=lambda each: each.beside[GPU_RESOURCE], default=None)


def plan_of(stack: StackSettings, price: float | None = None) -> Plan:
    """The plan of a stack. `price`: of a GPU in an hour, for pools that say none."""
    pools = tuple(pool if pool.gpu_hour_price is not None else _priced(pool, price) for pool in stack.nodes)
    there, started = rooms_of(stack), Nodes(pools)
    demands = {tenant.name: clusters_of(stack, tenant) for tenant in stack.tenants}
    accounts = accounts_of(stack, there)
    pods = [each for clusters in demands.values() for workers in clusters.values() for each in workers]
    left_out = started.start([*redis_pods(stack), *pods], accounts)
    growing, counted, promises = started.copy(), fresh(accounts), fresh(accounts, empty=True)
    tenants, promised = [], []
    for tenant in stack.tenants:
        mine = demands[tenant.name]
        growing.grow(_all(mine), counted)
        promised.append(_filled(_all(mine), pools, promises).taken())
        clusters = tuple(
            _cluster(name, queue_of(tenant, cluster), workers, pools, started, accounts)
            for cluster, (name, workers) in zip(tenant.clusters, mine.items(), strict=True)
        )
        tenants.append(_tenant(tenant, clusters, mine, pools, accounts, growing))
    plan = Plan(
        pools=pools,
        tenants=tuple(tenants),
        queues=tuple(queues_of(stack)),
        rooms=there,
        started=started,
        left_out=tuple(left_out),
        cost=_range(started, growing),
        promised=total(promised),
    )
    return replace(plan, overcommitments=tuple(overcommitments(plan)))


def _priced(pool: NodePool, price: float | None) -> NodePool:
    return pool.model_copy(update={"gpu_hour_price": price})


def _all(clusters: dict[str, list[Workers]]) -> list[Workers]:
    return [each for workers in clusters.values() for each in workers]


def _cluster(
    name: str,
    queue: str | None,
    workers: list[Workers],
    pools: tuple[NodePool, ...],
    started: Nodes,
    accounts: Accounts,
) -> ClusterPlan:
    beside = started.copy()
    beside.grow(workers, fresh({name: accounts[name]}))
    alone = _filled(workers, pools, fresh({name: accounts[name]}, empty=True))
    return ClusterPlan(
        name=name,
        queue=queue,
        groups=tuple(_group(each, pools) for each in workers),
        starts=_starts(workers),
        alone=alone.taken(),
        beside=beside.taken({name}),
    )


def _group(workers: Workers, pools: tuple[NodePool, ...]) -> GroupPlan:
    there = eligible(workers.spec, pools)
    pods = sum(pool.count * held(workers, pool) for pool in there)
    return GroupPlan(workers, tuple(pool.pool for pool in there), pods // workers.hosts)


def _starts(workers: list[Workers]) -> Usage:
    return total({key: value * each.least for key, value in each.usage.items()} for each in workers)


def _filled(workers: list[Workers], pools: tuple[NodePool, ...], accounts: Accounts) -> Nodes:
    """Nodes that the workers alone have filled as far as they may."""
    nodes = Nodes(pools)
    nodes.start(workers, accounts)
    nodes.grow(workers, accounts)
    return nodes


def _tenant(
    settings: TenantSettings,
    clusters: tuple[ClusterPlan, ...],
    demands: dict[str, list[Workers]],
    pools: tuple[NodePool, ...],
    accounts: Accounts,
    growing: Nodes,
) -> TenantPlan:
    own = settings.queue if settings.queue and settings.queue.name is None else None
    greatest = _filled(_all(demands), pools, fresh({name: accounts[name] for name in demands}, empty=True))
    started = Nodes(pools)
    started.start(_all(demands))
    return TenantPlan(
        settings=settings,
        clusters=clusters,
        starts=_starts(_all(demands)),
        guaranteed=own.amounts("guarantee") if own else {},
        greatest=greatest.taken(),
        in_turn=growing.taken(set(demands)),
        cost=_range(started, greatest),
    )


def _range(least: Nodes, most: Nodes) -> tuple[float, float] | None:
    """What the GPUs that are taken cost in an hour; None where a pool with GPUs has no price."""
    if any(pool.gpus and pool.gpu_hour_price is None for pool in least.pools) or not least.pools:
        return None
    return _cost(least), _cost(most)


def _cost(nodes: Nodes) -> float:
    prices = {pool.pool: pool.gpu_hour_price or 0.0 for pool in nodes.pools}
    return sum(float(gpus) * prices[pool] for pool, gpus in nodes.gpus_by_pool().items())
