"""Places pods on nodes: each on the fullest node that has room, the largest pods first. Finds pods that no node of the
stack file can hold, and workers for which its pools have no room. Pure functions.

There is no backtracking. Placed pods fit; pods without a place might fit in another order, which a scheduler does not
try either. Sizes that divide a node remain without a place only if GPUs are short.

Nodes with equal free amounts are counted, and equal pods are placed together. So the time for a plan grows with the
number of tenants, not with the number of nodes and pods.

Problems are only what is certain: each RayCluster is judged alone, on empty nodes. stacks/planning places all of them
together.
"""

import functools
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from components.capacity.limits import NO_ACCOUNTS, Accounts, eligible
from components.tenant.demand import Group, Usage
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Problem
from core.quantities import amount, shown

RESOURCES = (GPU_RESOURCE, "cpu", "memory")
"""The known resources of nodes. The first one stands for the GPUs of all vendors."""

PODS_PER_NODE = 110
"""Kubernetes' own default for a kubelet (KubeletConfiguration maxPods)."""

_NONE = Decimal(0)

NOTHING: Usage = dict.fromkeys(RESOURCES, _NONE)
"""The usage of no pods."""


@dataclass(frozen=True, eq=False)
class Workers:
    """Equal pods: the workers of a group, or a head."""

    owner: str
    """The RayCluster, as `<namespace>/<name>`."""

    group: str
    """The worker group, or `head`."""

    usage: Usage
    """Usage of quotas and nodes by one worker with all its pods."""

    spec: Mapping[str, Any]
    """Spec of the pods."""

    least: int
    """Initial workers."""

    most: int | None
    """Maximum workers; None: no limit."""

    hosts: int = 1
    """Pods of a worker."""

    gpu_resource: str = GPU_RESOURCE
    """The resource of its GPUs, if it has any."""

    drain: int | None = None
    """The most seconds for which one drains before it ends; None: unknown, or the pod of a head."""

    @functools.cached_property
    def amounts(self) -> tuple[Decimal, ...]:
        """Usage of a node by one pod, in the order of RESOURCES, and 1 for the number of pods."""
        names = (self.gpu_resource, *RESOURCES[1:])
        return (*(self.usage.get(resource, _NONE) / self.hosts for resource in names), Decimal(1))

    @property
    def gpus(self) -> Decimal:
        """GPUs of one pod."""
        return self.amounts[0]


Free = tuple[Decimal, ...]
"""Free amounts of a node, in the order of RESOURCES, and its free pods. The fullest node has the smallest tuple."""


@dataclass(frozen=True)
class Placed:
    """Pods on equal nodes, the same number on each."""

    workers: Workers
    pool: NodePool

    free: Free
    """Free amounts of each node before."""

    nodes: int
    pods: int
    """Pods on each node."""

    @functools.cached_property
    def left(self) -> Free:
        """Free amounts of each node afterwards."""
        return tuple(free - each * self.pods for free, each in zip(self.free, self.workers.amounts, strict=True))

    @property
    def gpus(self) -> Decimal:
        """GPUs of all the pods."""
        return self.workers.gpus * self.nodes * self.pods


@dataclass(eq=False)
class Node:
    pool: NodePool
    number: int
    """Number in its pool, from 0."""

    free: Free
    pods: list[Workers] = field(default_factory=list)


class Nodes:
    """The nodes of a stack's pools with their pods."""

    def __init__(self, pools: Sequence[NodePool]) -> None:
        self.pools = pools
        self.placed: list[Placed] = []
        """Placed pods, in the order of placement."""
        self._eligible: dict[Workers, tuple[NodePool, ...]] = {}
        self._alike = {pool.pool: {capacity(pool): pool.count} if pool.count else {} for pool in pools}
        """Number of nodes, by pool and free amounts."""
        self._sorted = {name: list(alike) for name, alike in self._alike.items()}
        """Free amounts of nodes by pool, the fullest first."""

    def start(self, workers: Iterable[Workers], accounts: Accounts = NO_ACCOUNTS) -> list[tuple[Workers, int]]:
        """Places the initial workers, the largest first. Returns those without room, with their number.

        `accounts`: count the usage, without enforcing their limits here.
        """
        left_out = []
        for each in _largest_first(each for each in workers if each.least):
            placed = self.place(each, each.least)
            for account in accounts.get(each.owner, ()):
                account.take(each.usage, each.least)
            if placed < each.least:
                left_out.append((each, each.least - placed))
        return left_out

    def grow(self, workers: Iterable[Workers], accounts: Accounts = NO_ACCOUNTS) -> None:
        """Places more workers up to their maximum, the accounts' limits and the free room, the largest first."""
        as_many_as_fit = PODS_PER_NODE * sum(pool.count for pool in self.pools)
        for each in _largest_first(each for each in workers if each.most is None or each.most > each.least):
            counted = accounts.get(each.owner, ())
            number = as_many_as_fit if each.most is None else each.most - each.least
            for account in counted:
                number = account.admits(each.usage, number)
            placed = self.place(each, number)
            for account in counted:
                account.take(each.usage, placed)

    def place(self, worker: Workers, number: int = 1) -> int:
        """Places up to `number` workers, each with all its pods or not at all. Returns the number of placed workers."""
        before, placed, desired = len(self.placed), 0, number * worker.hosts
        while placed < desired and (fullest := self._fullest(worker)):
            pool, free = fullest
            # With one more pod it is still the fullest node, until it has no room.
            pods = min(_times(free, worker.amounts), desired - placed)
            nodes = min(self._alike[pool.pool][free], (desired - placed) // pods)
            self._put(Placed(worker, pool, free, nodes, pods))
            placed += nodes * pods
        whole = placed // worker.hosts
        if whole * worker.hosts < placed:
            self._take_back(before)
            return self.place(worker, whole)
        return whole

    @contextmanager
    def trial(self) -> Iterator[Callable[[], Usage]]:
        """A context that removes all pods placed within it at its end. Yields a function for their usage."""
        before = len(self.placed)
        try:
            yield lambda: _taken(self.placed[before:])
        finally:
            self._take_back(before)

    def eligible(self, worker: Workers) -> tuple[NodePool, ...]:
        if worker not in self._eligible:
            self._eligible[worker] = possible_pools(worker, self.pools)
        return self._eligible[worker]

    def taken(self) -> Usage:
        """Usage of the nodes by all pods."""
        return _taken(self.placed)

    def taken_by_owner(self) -> Mapping[str, Usage]:
        """Usage of the nodes by each RayCluster."""
        by_owner: dict[str, list[Placed]] = defaultdict(list)
        for each in self.placed:
            by_owner[each.workers.owner].append(each)
        return defaultdict(lambda: NOTHING, {owner: _taken(placed) for owner, placed in by_owner.items()})

    def gpus_by_pool(self) -> dict[str, Decimal]:
        """Used GPUs, by pool name."""
        found = dict.fromkeys((pool.pool for pool in self.pools), _NONE)
        for each in self.placed:
            found[each.pool.pool] += each.gpus
        return found

    @property
    def nodes(self) -> list[Node]:
        made = [Node(pool, number, capacity(pool)) for pool in self.pools for number in range(pool.count)]
        alike: dict[tuple[str, Free], list[Node]] = defaultdict(list)
        for node in reversed(made):
            alike[node.pool.pool, node.free].append(node)
        for each in self.placed:
            for _ in range(each.nodes):
                node = alike[each.pool.pool, each.free].pop()
                node.pods += [each.workers] * each.pods
                node.free = each.left
                alike[each.pool.pool, node.free].append(node)
        return made

    def _fullest(self, worker: Workers) -> tuple[NodePool, Free] | None:
        """Pool and free amounts of the fullest node that has room for a pod."""
        found: tuple[NodePool, Free] | None = None
        for pool in self.eligible(worker):
            states = self._sorted[pool.pool]
            # Nodes that sort before the amounts have too little of some resource.
            fitting = (states[at] for at in range(bisect_left(states, worker.amounts), len(states)))
            free = next((free for free in fitting if _room(free, worker.amounts)), None)
            if free is not None and (found is None or free < found[1]):
                found = pool, free
        return found

    def _put(self, placed: Placed) -> None:
        self.placed.append(placed)
        self._change(placed.pool, placed.free, placed.left, placed.nodes)

    def _take_back(self, before: int) -> None:
        while len(self.placed) > before:
            each = self.placed.pop()
            self._change(each.pool, each.left, each.free, each.nodes)

    def _change(self, pool: NodePool, free: Free, then: Free, nodes: int) -> None:
        alike, ordered = self._alike[pool.pool], self._sorted[pool.pool]
        alike[free] -= nodes
        if not alike[free]:
            del alike[free]
            ordered.pop(bisect_left(ordered, free))
        if then not in alike:
            insort(ordered, then)
        alike[then] = alike.get(then, 0) + nodes


def possible_pools(worker: Workers, pools: Sequence[NodePool]) -> tuple[NodePool, ...]:
    """The pools whose nodes its pods may run on, and which have GPUs of its kind if it needs any."""
    return tuple(pool for pool in eligible(worker.spec, pools) if _has_its_gpus(pool, worker))


def _has_its_gpus(pool: NodePool, worker: Workers) -> bool:
    return not worker.gpus or pool.gpu_resource == worker.gpu_resource


def held(worker: Workers, pool: NodePool) -> int:
    """The number of its pods that fit on an empty node of the pool."""
    return _times(capacity(pool), worker.amounts)


def _times(free: Free, needed: Sequence[Decimal]) -> int:
    """The number of pods that fit."""
    return int(min(left // each for left, each in zip(free, needed, strict=True) if each))


def _taken(placed: Iterable[Placed]) -> Usage:
    found = dict(NOTHING)
    for each in placed:
        names = (each.workers.gpu_resource, *RESOURCES[1:])
        for resource, one in zip(names, each.workers.amounts[:-1], strict=True):
            found[resource] = found.get(resource, _NONE) + one * each.nodes * each.pods
    return found


def capacity(pool: NodePool) -> Free:
    """The amounts of an empty node of a pool, in the order of RESOURCES, and its pods."""
    return Decimal(pool.gpus), amount(pool.cpu), amount(pool.memory), Decimal(PODS_PER_NODE)


def _room(free: Sequence[Decimal], needed: Sequence[Decimal]) -> bool:
    return all(left >= each for left, each in zip(free, needed, strict=True))


def _largest_first(workers: Iterable[Workers]) -> list[Workers]:
    return sorted(workers, key=lambda each: each.amounts, reverse=True)


_WORDS = {GPU_RESOURCE: "gpus"}

_HEAD = "the head"


def without_room(
    groups: Iterable[tuple[Group, Workers]], pools: Sequence[NodePool], elsewhere: Container[str] = ()
) -> Iterator[Problem]:
    """The problems of a RayCluster's pods; paths in its body.

    `elsewhere`: worker groups that are bound to no pool, whose pods may run on nodes that the stack file lacks.
    """
    started: dict[tuple[str, ...], list[tuple[Group, Workers]]] = {}
    for group, workers in groups if pools else ():
        possible = possible_pools(workers, pools) or eligible(workers.spec, pools) or tuple(pools)
        room = sum(pool.count * held(workers, pool) for pool in possible if _has_its_gpus(pool, workers))
        if not room:
            yield _too_large(group, workers, possible)
        elif workers.least and workers.group not in elsewhere and group.title != _HEAD:
            if workers.least * workers.hosts > room:
                yield _too_many([(group, workers)], possible, room // workers.hosts)
            else:
                started.setdefault(tuple(pool.pool for pool in possible), []).append((group, workers))
    for names, together in started.items():
        possible = tuple(pool for pool in pools if pool.pool in names)
        if len(together) > 1 and _beyond(together, possible):
            yield _too_many(together, possible, None)


def _beyond(together: Sequence[tuple[Group, Workers]], pools: Sequence[NodePool]) -> bool:
    """Whether the initial workers of several groups need more of a resource than the pools have."""
    needed = [sum((each.amounts[at] * each.hosts * each.least for _, each in together), Decimal(0)) for at in range(4)]
    have = [sum((capacity(pool)[at] * pool.count for pool in pools), Decimal(0)) for at in range(4)]
    return any(one > most for one, most in zip(needed, have, strict=True))


def _too_large(group: Group, workers: Workers, pools: Sequence[NodePool]) -> Problem:
    needed = zip((workers.gpu_resource, *RESOURCES[1:]), workers.amounts, strict=False)
    most = [max(capacity(pool)[at] for pool in pools) for at in range(len(RESOURCES))]
    most[0] = max((Decimal(pool.gpus) for pool in pools if _has_its_gpus(pool, workers)), default=_NONE)
    beyond = [(resource, one, largest) for (resource, one), largest in zip(needed, most, strict=True) if one > largest]
    resource, one, largest = beyond[0] if beyond else ("memory", workers.amounts[2], None)
    whose = group.title if group.title == _HEAD else f"a pod of {group.title}"
    names = ", ".join(pool.pool for pool in pools)
    room = (
        f"more than a node of {names} has ({shown(resource, largest)})"
        if largest is not None
        else f"and a node of {names} has no room"
    )
    needs = f"takes {_WORDS.get(resource, resource)} {shown(resource, one)} with all its containers"
    path = (*group.path, "template", "spec", "containers", 0, "resources", "limits", resource)
    return Problem(path, None, f"{whose} {needs}, {room}: lower it", "pod-fits-node")


def _too_many(together: Sequence[tuple[Group, Workers]], pools: Sequence[NodePool], room: int | None) -> Problem:
    group, workers = together[-1]
    names = ", ".join(f"{pool.count} nodes of {pool.pool}" for pool in pools)
    count = " and ".join(f"{each.least} workers of {each.group}" for _, each in together)
    holds = f"have room for {room}" if room is not None else "do not have room for all"
    key = "minReplicas" if group.least == group.at_first else "replicas"
    message = f"the cluster starts with {count}, and the {names} {holds}: lower it, or raise the pool's count"
    return Problem((*group.path, key), workers.least, message, "workers-fit-pool")
