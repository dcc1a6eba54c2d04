"""What a stack's nodes hold of what its file promises.

It knows what the stack file says and nothing else: other pods on the nodes, and RayClusters that people make by other
means, are not counted. `reserve` of workers and `nodes`, which are allocatable amounts, leave room for daemons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from components.capacity.accounts import Accounts
from components.capacity.placement import NOTHING, Nodes, Workers, held
from components.queues.queue import Queue
from components.tenant.demand import Usage, total
from core.nodes import GPU_RESOURCE, NodePool

from ..queues import queue_of, queues_of, rooms_of
from ..settings import StackSettings, TenantSettings
from .demands import Rooms, accounts_of, clusters_of, fresh, redis_pods


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

    @property
    def largest_gang(self) -> ClusterPlan | None:
        """The RayCluster that can hold most GPUs beside what all others start with; the first of equals."""
        clusters = [cluster for tenant in self.tenants for cluster in tenant.clusters]
        return max(clusters, key=lambda each: each.beside[GPU_RESOURCE], default=None)


def plan_of(stack: StackSettings, price: float | None = None) -> Plan:
    """The plan of a stack. `price`: of a GPU in an hour, for pools that say none."""
    pools = tuple(pool if pool.gpu_hour_price is not None else _priced(pool, price) for pool in stack.nodes)
    there, started, empty = rooms_of(stack), Nodes(pools), Nodes(pools)
    demands = {tenant.name: clusters_of(stack, tenant) for tenant in stack.tenants}
    accounts = accounts_of(stack, there)
    left_out = started.start(
        [*redis_pods(stack), *(each for mine in demands.values() for each in _all(mine))], accounts
    )
    always = started.taken_by_owner()
    with started.trial():
        counted = fresh(accounts)
        for mine in demands.values():
            started.grow(_all(mine), counted)
        in_turn, grown = started.taken_by_owner(), started.gpus_by_pool()
    tenants, promised, promises = [], [], fresh(accounts, empty=True)
    for tenant in stack.tenants:
        mine = demands[tenant.name]
        promised.append(_filled(empty, _all(mine), promises).taken)
        clusters = tuple(
            _cluster(name, queue_of(tenant, cluster), workers, started, always[name], empty, accounts)
            for cluster, (name, workers) in zip(tenant.clusters, mine.items(), strict=True)
        )
        tenants.append(
            _tenant(tenant, clusters, mine, empty, accounts, total([NOTHING, *(in_turn[name] for name in mine)]))
        )
    return Plan(
        pools=pools,
        tenants=tuple(tenants),
        queues=tuple(queues_of(stack)),
        rooms=there,
        started=started,
        left_out=tuple(left_out),
        cost=_range(pools, started.gpus_by_pool(), grown),
        promised=total(promised),
    )


def _priced(pool: NodePool, price: float | None) -> NodePool:
    return pool.model_copy(update={"gpu_hour_price": price})


def _all(clusters: dict[str, list[Workers]]) -> list[Workers]:
    return [each for workers in clusters.values() for each in workers]


def _cluster(
    name: str,
    queue: str | None,
    workers: list[Workers],
    started: Nodes,
    always: Usage,
    empty: Nodes,
    accounts: Accounts,
) -> ClusterPlan:
    with started.trial() as added:
        started.grow(workers, fresh({name: accounts[name]}))
        beside = total([always, added()])
    return ClusterPlan(
        name=name,
        queue=queue,
        groups=tuple(_group(each, empty.eligible(each)) for each in workers),
        starts=_starts(workers),
        alone=_filled(empty, workers, fresh({name: accounts[name]}, empty=True)).taken,
        beside=beside,
    )


def _group(workers: Workers, there: tuple[NodePool, ...]) -> GroupPlan:
    pods = sum(pool.count * held(workers, pool) for pool in there)
    return GroupPlan(workers, tuple(pool.pool for pool in there), pods // workers.hosts)


def _starts(workers: list[Workers]) -> Usage:
    return total({key: value * each.least for key, value in each.usage.items()} for each in workers)


@dataclass(frozen=True)
class _Filled:
    """Nodes that some workers alone have filled as far as they may."""

    taken: Usage

    at_first: dict[str, Decimal]
    """GPUs by pool that the workers start with."""

    at_most: dict[str, Decimal]


def _filled(empty: Nodes, workers: list[Workers], accounts: Accounts) -> _Filled:
    with empty.trial():
        empty.start(workers, accounts)
        at_first = empty.gpus_by_pool()
        empty.grow(workers, accounts)
        return _Filled(empty.taken(), at_first, empty.gpus_by_pool())


def _tenant(
    settings: TenantSettings,
    clusters: tuple[ClusterPlan, ...],
    demands: dict[str, list[Workers]],
    empty: Nodes,
    accounts: Accounts,
    in_turn: Usage,
) -> TenantPlan:
    own = settings.queue if settings.queue and settings.queue.name is None else None
    greatest = _filled(empty, _all(demands), fresh({name: accounts[name] for name in demands}, empty=True))
    return TenantPlan(
        settings=settings,
        clusters=clusters,
        starts=_starts(_all(demands)),
        guaranteed=own.amounts("guarantee") if own else {},
        greatest=greatest.taken,
        in_turn=in_turn,
        cost=_range(empty.pools, greatest.at_first, greatest.at_most),
    )


def _range(
    pools: Sequence[NodePool], least: Mapping[str, Decimal], most: Mapping[str, Decimal]
) -> tuple[float, float] | None:
    """What GPUs of these pools cost in an hour; None where a pool with GPUs has no price."""
    if any(pool.gpus and pool.gpu_hour_price is None for pool in pools) or not pools:
        return None
    return _cost(pools, least), _cost(pools, most)


def _cost(pools: Sequence[NodePool], gpus: Mapping[str, Decimal]) -> float:
    prices = {pool.pool: pool.gpu_hour_price or 0.0 for pool in pools}
    return sum(float(number) * prices[pool] for pool, number in gpus.items())
