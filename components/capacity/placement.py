"""Pods on nodes: each goes to the fullest node that has room, the greatest first.

No order is tried twice. So what is placed fits, and what is left out might have fitted in an order that a scheduler
does not try either. Sizes that divide a node are left out only where GPUs are short.

Nodes with the same amounts left are counted, and alike pods are placed together: a plan of many tenants takes time in
proportion to their number, not to that of nodes and pods.
"""

import functools
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from core.nodes import GPU_RESOURCE, NodePool
from core.quantities import amount

from ..tenant.demand import Usage
from .accounts import NO_ACCOUNTS, Accounts
from .eligibility import eligible

RESOURCES = (GPU_RESOURCE, "cpu", "memory")
"""What is known of nodes."""

PODS_PER_NODE = 110
"""Kubernetes' own default for a kubelet (KubeletConfiguration maxPods)."""

_NONE = Decimal(0)

NOTHING: Usage = dict.fromkeys(RESOURCES, _NONE)
"""What no pod takes of the nodes."""


@dataclass(frozen=True, eq=False)
class Workers:
    """Pods that are alike: the workers of a group, or a head."""

    owner: str
    """The RayCluster, as `<namespace>/<name>`."""

    group: str
    """The worker group, or `head`."""

    usage: Usage
    """What one worker takes of quotas and nodes, all its pods together."""

    spec: Mapping[str, Any]
    """Of the pods."""

    least: int
    """Workers that it starts with."""

    most: int | None
    """Most workers at a time; None: any number."""

    hosts: int = 1
    """Pods of a worker."""

    @functools.cached_property
    def amounts(self) -> tuple[Decimal, ...]:
        """What one pod takes of a node, in the order of RESOURCES, and 1 of its pods."""
        return (*(self.usage.get(resource, _NONE) / self.hosts for resource in RESOURCES), Decimal(1))

    @property
    def gpus(self) -> Decimal:
        """GPUs of one pod."""
        return self.amounts[0]


Free = tuple[Decimal, ...]
"""What is left of a node, in the order of RESOURCES, and of pods. The fullest node is the least of them."""


@dataclass(frozen=True)
class Placed:
    """Pods that have come to nodes that were alike, so many to each."""

    workers: Workers
    pool: NodePool

    free: Free
    """What each node had left before."""

    nodes: int
    pods: int
    """On each node."""

    @functools.cached_property
    def left(self) -> Free:
        """What each node has left with them."""
        return tuple(free - each * self.pods for free, each in zip(self.free, self.workers.amounts, strict=True))

    @property
    def gpus(self) -> Decimal:
        """GPUs of all the pods."""
        return self.workers.gpus * self.nodes * self.pods


@dataclass(eq=False)
class Node:
    """A node with what runs on it."""

    pool: NodePool
    number: int
    """From 0 in its pool."""

    free: Free
    pods: list[Workers] = field(default_factory=list)


class Nodes:
    """The nodes of a stack's pools, and what is placed on them."""

    def __init__(self, pools: Sequence[NodePool]) -> None:
        """Empty ones."""
        self.pools = pools
        self.placed: list[Placed] = []
        """What was placed, in this order."""
        self._eligible: dict[Workers, tuple[NodePool, ...]] = {}
        self._alike = {pool.pool: {_of(pool): pool.count} if pool.count else {} for pool in pools}
        """By pool and what is left of a node, the number of such nodes."""
        self._sorted = {name: list(alike) for name, alike in self._alike.items()}
        """By pool, what nodes have left, the fullest first."""

    def start(self, workers: Iterable[Workers], accounts: Accounts = NO_ACCOUNTS) -> list[tuple[Workers, int]]:
        """Place what they start with, the greatest first; what finds no room is returned, with how many.

        `accounts`: what it is counted in. They refuse nothing here.
        """
        left_out = []
        for each in _greatest_first(each for each in workers if each.least):
            placed = self.place(each, each.least)
            for account in accounts.get(each.owner, ()):
                account.take(each.usage, each.least)
            if placed < each.least:
                left_out.append((each, each.least - placed))
        return left_out

    def grow(self, workers: Iterable[Workers], accounts: Accounts = NO_ACCOUNTS) -> None:
        """Place as many more as there may be, as the accounts admit and as there is room for, the greatest first."""
        as_many_as_fit = PODS_PER_NODE * sum(pool.count for pool in self.pools)
        for each in _greatest_first(each for each in workers if each.most is None or each.most > each.least):
            counted = accounts.get(each.owner, ())
            number = as_many_as_fit if each.most is None else each.most - each.least
            for account in counted:
                number = account.admits(each.usage, number)
            placed = self.place(each, number)
            for account in counted:
                account.take(each.usage, placed)

    def place(self, worker: Workers, number: int = 1) -> int:
        """Place as many of so many workers as there is room for, each with all of its pods or not at all: how many."""
        before, placed, wanted = len(self.placed), 0, number * worker.hosts
        while placed < wanted and (found := self._fullest(worker)):
            pool, free = found
            # With a pod more it is the fullest still, until it has no room.
            pods = min(_times(free, worker.amounts), wanted - placed)
            nodes = min(self._alike[pool.pool][free], (wanted - placed) // pods)
            self._put(Placed(worker, pool, free, nodes, pods))
            placed += nodes * pods
        whole = placed // worker.hosts
        if whole * worker.hosts < placed:
            self._take_back(before)
            return self.place(worker, whole)
        return whole

    @contextmanager
    def trial(self) -> Iterator[Callable[[], Usage]]:
        """What is placed within it is taken back at its end; it gives what that takes of the nodes."""
        before = len(self.placed)
        try:
            yield lambda: _taken(self.placed[before:])
        finally:
            self._take_back(before)

    def eligible(self, worker: Workers) -> tuple[NodePool, ...]:
        """The pools whose nodes a worker may run on."""
        if worker not in self._eligible:
            self._eligible[worker] = eligible(worker.spec, self.pools)
        return self._eligible[worker]

    def taken(self) -> Usage:
        """What all pods take of the nodes."""
        return _taken(self.placed)

    def taken_by_owner(self) -> Mapping[str, Usage]:
        """What the pods of each RayCluster take of the nodes."""
        by_owner: dict[str, list[Placed]] = defaultdict(list)
        for each in self.placed:
            by_owner[each.workers.owner].append(each)
        return defaultdict(lambda: NOTHING, {owner: _taken(placed) for owner, placed in by_owner.items()})

    def gpus_by_pool(self) -> dict[str, Decimal]:
        """GPUs that are taken, by the pool's name."""
        found = dict.fromkeys((pool.pool for pool in self.pools), _NONE)
        for each in self.placed:
            found[each.pool.pool] += each.gpus
        return found

    @property
    def nodes(self) -> list[Node]:
        """Each node by itself, with its pods."""
        made = [Node(pool, number, _of(pool)) for pool in self.pools for number in range(pool.count)]
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
        """The pool and the state of the fullest node that has room for a pod."""
        found: tuple[NodePool, Free] | None = None
        for pool in self.eligible(worker):
            there = self._sorted[pool.pool]
            # What sorts before the amounts has less of one of them.
            fitting = (there[at] for at in range(bisect_left(there, worker.amounts), len(there)))
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


def held(worker: Workers, pool: NodePool) -> int:
    """How many of its pods an empty node of the pool holds."""
    return _times(_of(pool), worker.amounts)


def _times(free: Free, wanted: Sequence[Decimal]) -> int:
    """How many pods there is room for."""
    return int(min(there // each for there, each in zip(free, wanted, strict=True) if each))


def _taken(placed: Iterable[Placed]) -> Usage:
    found = dict(NOTHING)
    for each in placed:
        for resource, one in zip(RESOURCES, each.workers.amounts[:-1], strict=True):
            found[resource] += one * each.nodes * each.pods
    return found


def _of(pool: NodePool) -> Free:
    return Decimal(pool.gpus), amount(pool.cpu), amount(pool.memory), Decimal(PODS_PER_NODE)


def _room(free: Sequence[Decimal], wanted: Sequence[Decimal]) -> bool:
    return all(there >= each for there, each in zip(free, wanted, strict=True))


def _greatest_first(workers: Iterable[Workers]) -> list[Workers]:
    return sorted(workers, key=lambda each: each.amounts, reverse=True)
