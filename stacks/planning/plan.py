"""Whether a stack's nodes, queues and quotas can provide what its file promises. Pure functions.

It only knows the stack file: other pods on the nodes, and RayClusters created by other means, are not counted.
`reserve` of workers and `nodes`, which are allocatable amounts, leave room for daemons.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from components.capacity.limits import Account, Accounts
from components.capacity.placement import NOTHING, Nodes, Workers, held
from components.queues.settings import Queue
from components.tenant.demand import Usage, total
from core.nodes import NodePool, gpus_of
from stacks.objects.queues import queue_of, queues_of, rooms_of
from stacks.planning.demands import (
    Rooms,
    accounts_of,
    clusters_of,
    fresh,
    program_pods,
    redis_pods,
    runs_of,
    submitters,
    updates_of,
)
from stacks.settings import StackSettings, TenantSettings


@dataclass(frozen=True)
class TooSmall:
    """A queue or a quota in which not all of its RayClusters can run at the same time, even as they start."""

    name: str
    """`queue research`, or `the quota of team-a`."""

    needed: Usage
    """What they start with together, of the resources of which it has too little."""

    most: Usage
    """What it has of these."""

    waiting: tuple[str, ...]
    """Those that wait if they start in the order of the file."""


def too_small(starts: Mapping[str, Usage], accounts: Accounts) -> Iterator[TooSmall]:
    """The queues and quotas that are too small. `starts`: what each RayCluster starts with, by name."""
    counted: dict[int, tuple[Account, list[str]]] = {}
    for name in starts:
        for account in accounts[name]:
            counted.setdefault(id(account), (account, []))[1].append(name)
    for account, names in counted.values():
        needed = total(starts[name] for name in names)
        short = [entry for entry, most in account.limits.items() if needed.get(entry, Decimal(0)) > most]
        if short:
            of_all, of_account = ({entry: amounts[entry] for entry in short} for amounts in (needed, account.limits))
            yield TooSmall(account.name, of_all, of_account, tuple(_waiting(names, starts, account)))


def _waiting(names: list[str], starts: Mapping[str, Usage], account: Account) -> Iterator[str]:
    room = Account(account.limits)
    for name in names:
        if room.admits(starts[name], 1):
            room.take(starts[name])
        else:
            yield name


@dataclass(frozen=True)
class GroupPlan:
    """A worker group, or the head."""

    workers: Workers

    pools: tuple[str, ...]
    """The pools whose nodes it may run on."""

    held: int
    """The largest number of workers that fit on the otherwise empty nodes."""


@dataclass(frozen=True)
class ClusterPlan:
    name: str
    """`<namespace>/<name>`."""

    queue: str | None

    groups: tuple[GroupPlan, ...]

    starts: Usage
    """What it uses at its start."""

    alone: Usage
    """What it uses at its largest, if nothing else runs."""

    beside: Usage
    """What it uses at its largest beside the initial pods of all others. Its GPUs are the largest gang that it can
    run."""


@dataclass(frozen=True)
class RunPlan:
    """One run of a job template with sizes. Nothing else counts it."""

    template: str
    """`<namespace>/<name>`."""

    size: str | None
    """None: the template's own."""

    starts: Usage
    """What it uses at its start."""

    alone: Usage
    """What it uses at its largest, if nothing else runs."""


@dataclass(frozen=True)
class TenantPlan:
    settings: TenantSettings

    clusters: tuple[ClusterPlan, ...]

    starts: Usage
    """What its RayClusters use at their start, and therefore always."""

    guaranteed: Usage
    """What its own queue guarantees; empty if it has none."""

    maximum: Usage
    """What it uses at most, if nothing else runs: within its quota, its queues and the nodes."""

    in_file_order: Usage
    """What it uses if tenants grow to their largest in the order of the file, beside the initial pods of all."""

    cost: tuple[float, float] | None
    """Per hour, for the GPUs at its start, and at its largest; None if no price is set."""


@dataclass(frozen=True)
class Plan:
    pools: tuple[NodePool, ...]

    tenants: tuple[TenantPlan, ...]

    runs: tuple[RunPlan, ...]

    queues: tuple[Queue, ...]
    rooms: Rooms

    started: Nodes
    """The nodes with the initial pods of all RayClusters."""

    left_out: tuple[tuple[Workers, int], ...]
    """The initial pods that fit nowhere, with their number."""

    too_small: tuple[TooSmall, ...]

    updates: Mapping[str, Sequence[tuple[Workers, int]]]
    """By RayService whose updates start a second RayCluster: the pods of that which fit nowhere beside the initial pods
    of all, with their number. Each by itself, as if no other was updated."""

    cost: tuple[float, float] | None
    """Per hour, for GPUs: those that always run, and those that run after tenants have grown in turn."""

    promised: Usage
    """The most that all tenants together may use, without the limits of the nodes. A queue counts once."""

    may_overcommit: bool
    """Whether the stack file allows overcommitment, so that it is not reported."""

    @property
    def clusters(self) -> list[ClusterPlan]:
        return [cluster for tenant in self.tenants for cluster in tenant.clusters]

    @property
    def largest_gang(self) -> ClusterPlan | None:
        """The RayCluster that can use the most GPUs beside the initial pods of all others; the first of equals."""
        return max(self.clusters, key=lambda each: gpus_of(each.beside), default=None)


def plan_of(stack: StackSettings, price: float | None = None) -> Plan:
    """The plan of a stack. `price`: of a GPU in an hour, for pools that set none."""
    pools = tuple(
        pool if pool.gpu_hour_price is not None else pool.model_copy(update={"gpu_hour_price": price})
        for pool in stack.nodes
    )
    rooms, started, empty = rooms_of(stack), Nodes(pools), Nodes(pools)
    demands = {tenant.name: clusters_of(stack, tenant) for tenant in stack.tenants}
    accounts = accounts_of(stack, rooms)
    beside = [*redis_pods(stack), *submitters(stack), *program_pods(stack)]
    left_out = started.start([*beside, *(each for mine in demands.values() for each in _all(mine))], accounts)
    always = started.taken_by_owner()
    with started.trial():
        counted = fresh(accounts)
        for mine in demands.values():
            started.grow(_all(mine), counted)
        in_file_order, grown = started.taken_by_owner(), started.gpus_by_pool()
    updates = {}
    for name, second in ((name, each) for tenant in stack.tenants for name, each in updates_of(stack, tenant).items()):
        with started.trial():
            updates[name] = started.start(second)
    tenants, promised, promises = [], [], fresh(accounts, empty=True)
    for tenant in stack.tenants:
        mine = demands[tenant.name]
        promised.append(_filled(empty, _all(mine), promises).taken)
        alone = {name: _alone(empty, {name: workers}, accounts) for name, workers in mine.items()}
        clusters = tuple(
            _cluster(
                name, queue_of(tenant, cluster), workers, started, always[name], empty, alone[name].taken, accounts
            )
            for cluster, (name, workers) in zip(tenant.planned_clusters, mine.items(), strict=True)
        )
        # One RayCluster fills the nodes as its tenant does. Filling them takes most of the time.
        maximum = alone.popitem()[1] if len(alone) == 1 else _alone(empty, mine, accounts)
        tenants.append(
            _tenant(pools, tenant, clusters, mine, maximum, total([NOTHING, *(in_file_order[name] for name in mine)]))
        )
    return Plan(
        pools=pools,
        tenants=tuple(tenants),
        runs=tuple(
            RunPlan(name, size, _starts(workers), _alone(empty, {name: workers}, accounts).taken)
            for tenant in stack.tenants
            for name, size, workers in runs_of(stack, tenant)
        ),
        queues=tuple(queues_of(stack)),
        rooms=rooms,
        started=started,
        left_out=tuple(left_out),
        too_small=tuple(
            too_small({name: _starts(each) for mine in demands.values() for name, each in mine.items()}, accounts)
        ),
        updates=updates,
        cost=_range(pools, started.gpus_by_pool(), grown),
        promised=total(promised),
        may_overcommit=stack.capacity.overcommitment == "allowed",
    )


def _all(clusters: dict[str, list[Workers]]) -> list[Workers]:
    return [each for workers in clusters.values() for each in workers]


def _cluster(
    name: str,
    queue: str | None,
    workers: list[Workers],
    started: Nodes,
    always: Usage,
    empty: Nodes,
    alone: Usage,
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
        alone=alone,
        beside=beside,
    )


def _group(workers: Workers, pools: tuple[NodePool, ...]) -> GroupPlan:
    pods = sum(pool.count * held(workers, pool) for pool in pools)
    return GroupPlan(workers, tuple(pool.pool for pool in pools), pods // workers.hosts)


def _starts(workers: list[Workers]) -> Usage:
    return total({key: value * each.least for key, value in each.usage.items()} for each in workers)


@dataclass(frozen=True)
class _Filled:
    """Nodes that some workers alone have filled up to their limits."""

    taken: Usage

    at_first: dict[str, Decimal]
    """GPUs by pool at the workers' start."""

    at_most: dict[str, Decimal]


def _alone(empty: Nodes, clusters: dict[str, list[Workers]], accounts: Accounts) -> _Filled:
    """Nodes that these RayClusters fill, if nothing else runs."""
    return _filled(empty, _all(clusters), fresh({name: accounts[name] for name in clusters}, empty=True))


def _filled(empty: Nodes, workers: list[Workers], accounts: Accounts) -> _Filled:
    with empty.trial():
        empty.start(workers, accounts)
        at_first = empty.gpus_by_pool()
        empty.grow(workers, accounts)
        return _Filled(empty.taken(), at_first, empty.gpus_by_pool())


def _tenant(
    pools: Sequence[NodePool],
    settings: TenantSettings,
    clusters: tuple[ClusterPlan, ...],
    demands: dict[str, list[Workers]],
    maximum: _Filled,
    in_file_order: Usage,
) -> TenantPlan:
    own = settings.queue if settings.queue and settings.queue.name is None else None
    return TenantPlan(
        settings=settings,
        clusters=clusters,
        starts=_starts(_all(demands)),
        guaranteed=own.amounts("guarantee") if own else {},
        maximum=maximum.taken,
        in_file_order=in_file_order,
        cost=_range(pools, maximum.at_first, maximum.at_most),
    )


def _range(
    pools: Sequence[NodePool], least: Mapping[str, Decimal], most: Mapping[str, Decimal]
) -> tuple[float, float] | None:
    """The cost of these pools' GPUs per hour; None if a pool with GPUs has no price."""
    if any(pool.gpus and pool.gpu_hour_price is None for pool in pools) or not pools:
        return None
    return _cost(pools, least), _cost(pools, most)


def _cost(pools: Sequence[NodePool], gpus: Mapping[str, Decimal]) -> float:
    prices = {pool.pool: pool.gpu_hour_price or 0.0 for pool in pools}
    return sum(float(number) * prices[pool] for pool, number in gpus.items())
