"""Pods on nodes: each goes to the fullest node that has room, the greatest first.

No order is tried twice. So what is placed fits, and what is left out might have fitted in an order that a scheduler
does not try either. Sizes that divide a node are left out only where GPUs are short.
"""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ..nodes import GPU_RESOURCE, NodePool
from ..quantities import amount
from ..tenant.demand import Usage
from .eligibility import eligible

RESOURCES = (GPU_RESOURCE, "cpu", "memory")
"""What is known of nodes."""

PODS_PER_NODE = 110
"""Kubernetes' own default for a kubelet (KubeletConfiguration maxPods)."""

_NONE = Decimal(0)


@dataclass
class Account:
    """What some pods may take together."""

    limits: Mapping[str, Decimal]
    """The most, by entries of a usage."""

    used: Usage = field(default_factory=dict)

    def admits(self, usage: Usage) -> bool:
        """Whether so much more may be taken."""
        return all(self.used.get(entry, _NONE) + usage.get(entry, _NONE) <= most for entry, most in self.limits.items())

    def take(self, usage: Usage, times: int = 1) -> None:
        """Note that it is taken so many times."""
        for entry, value in usage.items():
            self.used[entry] = self.used.get(entry, _NONE) + value * times


Accounts = Mapping[str, Sequence[Account]]
"""By owner of pods, what these are counted in."""

NO_ACCOUNTS: Accounts = {}


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


@dataclass(eq=False)
class Node:
    """A node with what runs on it."""

    pool: NodePool
    number: int
    """From 0 in its pool."""

    free: tuple[Decimal, ...]
    """What is left, in the order of RESOURCES, and of pods."""

    pods: list[Workers] = field(default_factory=list)

    @property
    def state(self) -> tuple[str, tuple[Decimal, ...]]:
        """Nodes of one state are alike to pods that come."""
        return self.pool.pool, self.free


class Nodes:
    """The nodes of a stack's pools, and what is placed on them."""

    def __init__(self, pools: Sequence[NodePool]) -> None:
        """Empty ones."""
        self.pools = pools
        self.nodes = [Node(pool, number, _of(pool)) for pool in pools for number in range(pool.count)]
        self._eligible: dict[Workers, set[str]] = {}
        self._alike = _by_state(self.nodes)

    def copy(self) -> "Nodes":
        """The same pods on nodes of their own."""
        made = Nodes(())
        made.pools, made._eligible = self.pools, self._eligible
        made.nodes = [replace(node, pods=list(node.pods)) for node in self.nodes]
        made._alike = _by_state(made.nodes)
        return made

    def start(self, workers: Iterable[Workers], accounts: Accounts = NO_ACCOUNTS) -> list[tuple[Workers, int]]:
        """Place what they start with, the greatest first; what finds no room is returned, with how many.

        `accounts`: what it is counted in. They refuse nothing here.
        """
        left_out = []
        for each in _greatest_first(workers):
            placed = 0
            while placed < each.least and self.place(each):
                placed += 1
            for account in accounts.get(each.owner, ()):
                account.take(each.usage, each.least)
            if placed < each.least:
                left_out.append((each, each.least - placed))
        return left_out

    def grow(self, workers: Iterable[Workers], accounts: Accounts = NO_ACCOUNTS) -> None:
        """Place as many more as there may be, as the accounts admit and as there is room for, the greatest first."""
        for each in _greatest_first(workers):
            counted = accounts.get(each.owner, ())
            number = each.least
            while each.most is None or number < each.most:
                if not all(account.admits(each.usage) for account in counted) or not self.place(each):
                    break
                for account in counted:
                    account.take(each.usage)
                number += 1

    def place(self, worker: Workers) -> bool:
        """Place the pods of one worker, all or none: whether there was room."""
        if worker not in self._eligible:
            self._eligible[worker] = {pool.pool for pool in eligible(worker.spec, self.pools)}
        pools = self._eligible[worker]
        placed: list[Node] = []
        for _ in range(worker.hosts):
            fitting = [state for state in self._alike if state[0] in pools and _room(state[1], worker.amounts)]
            if not fitting:
                for node in placed:
                    node.pods.remove(worker)
                    self._change(node, [-taken for taken in worker.amounts])
                return False
            node = self._alike[min(fitting, key=lambda state: state[1])][-1]
            node.pods.append(worker)
            self._change(node, worker.amounts)
            placed.append(node)
        return True

    def _change(self, node: Node, taken: Sequence[Decimal]) -> None:
        alike = self._alike[node.state]
        if alike[-1] is node:
            alike.pop()
        else:
            alike.remove(node)
        if not alike:
            del self._alike[node.state]
        node.free = tuple(free - each for free, each in zip(node.free, taken, strict=True))
        self._alike.setdefault(node.state, []).append(node)

    def taken(self, owners: Collection[str] | None = None) -> Usage:
        """What the pods of those owners take of the nodes; None: all pods."""
        pods = [pod for node in self.nodes for pod in node.pods if owners is None or pod.owner in owners]
        return {resource: sum((pod.amounts[at] for pod in pods), _NONE) for at, resource in enumerate(RESOURCES)}

    def gpus_by_pool(self) -> dict[str, Decimal]:
        """GPUs that are taken, by the pool's name."""
        found = dict.fromkeys((pool.pool for pool in self.pools), _NONE)
        for node in self.nodes:
            found[node.pool.pool] += sum((pod.gpus for pod in node.pods), _NONE)
        return found


def held(worker: Workers, pool: NodePool) -> int:
    """How many of its pods an empty node of the pool holds."""
    return int(min(there // each for there, each in zip(_of(pool), worker.amounts, strict=True) if each))


def _by_state(nodes: Sequence[Node]) -> dict[tuple[str, tuple[Decimal, ...]], list[Node]]:
    found: dict[tuple[str, tuple[Decimal, ...]], list[Node]] = {}
    for node in reversed(nodes):
        found.setdefault(node.state, []).append(node)
    return found


def _of(pool: NodePool) -> tuple[Decimal, ...]:
    return Decimal(pool.gpus), amount(pool.cpu), amount(pool.memory), Decimal(PODS_PER_NODE)


def _room(free: Sequence[Decimal], wanted: Sequence[Decimal]) -> bool:
    return all(there >= each for there, each in zip(free, wanted, strict=True))


def _greatest_first(workers: Iterable[Workers]) -> list[Workers]:
    return sorted(workers, key=lambda each: each.amounts, reverse=True)
