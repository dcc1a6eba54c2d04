"""Pools of nodes that nothing tells apart. Pure functions."""

from collections.abc import Hashable, Iterator

from core.nodes import NodePool
from core.problems import Problem
from stacks.settings import StackSettings


def problems_of_pools(stack: StackSettings) -> Iterator[Problem]:
    """Pools whose pods would run on each other's nodes: workers would have another size, or another GPU, than set."""
    first: dict[Hashable, NodePool] = {}
    for index, pool in enumerate(stack.nodes):
        other = first.setdefault(_marks(pool), pool)
        if other.pool != pool.pool:
            message = (
                f"nothing tells its nodes from those of pool {other.pool!r}, so that pods of one run on the other: set "
                "labels that only the nodes of each have, or make it one pool"
            )
            yield Problem(("nodes", index, "pool"), pool.pool, message, "pools-alike")


def _marks(pool: NodePool) -> Hashable:
    """What pods select a pool's nodes by, and what keeps others away; a pod with GPUs runs on no node without."""
    taints = frozenset((each.key, each.value, each.effect) for each in pool.taints if each.effect != "PreferNoSchedule")
    return frozenset(pool.labels.items()), pool.gpu_product, taints, pool.gpus > 0
