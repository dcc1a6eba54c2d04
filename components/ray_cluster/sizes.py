"""How great the workers are that a pool's nodes can hold, and how many. Pure functions.

Derived sizes get at most their GPUs' share of a node's CPUs and memory less the reserve. So whatever fits on a node by
GPUs fits by CPUs and memory as well; `profile: ado`, which rounds CPUs up, does not promise that.
"""

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from core.nodes import NodePool
from core.problems import Path, Problem
from core.quantities import amount

from .node_settings import Budget, Profile, Reserve

_GI = Decimal(2**30)
_RESERVED_SHARE = Decimal(1) / 16
_MEMORY_RESERVED_BY_ADO = Decimal(1) / 5
"""ado's figures for nodes of 64 CPUs, 1000Gi and 8 GPUs are 8, 15, 30 and 60 CPUs and 100Gi for each GPU ("Deploying
Kuberay and creating a RayCluster"): CPUs less a sixteenth, rounded up, and memory less a fifth."""

_REPLICAS_OF_A_PART = 2
"""Two workers of one size use as many GPUs as one of the next, so a third is never needed (ado, "Best Practices for
Efficient GPU Resource Utilization")."""


def sizes(profile: Profile, gpus: int) -> tuple[int, ...]:
    """GPUs of the workers that a node with so many is cut into, smallest first. 0: one worker, without any."""
    return tiling(gpus) if profile == "tiling" else doubling(gpus)


def doubling(gpus: int) -> tuple[int, ...]:
    """The sizes of workers on a node: powers of two below its GPUs, and all of them. 6: 1, 2, 4, 6. 0: 0."""
    if gpus == 0:
        return (0,)
    return (*(2**power for power in range((gpus - 1).bit_length())), gpus)


def tiling(gpus: int) -> tuple[int, ...]:
    """The sizes of which a whole number fills a node. 8: 1, 2, 4, 8. 6: 1, 2, 3, 6. 0: 0."""
    return tuple(size for size in range(1, gpus + 1) if gpus % size == 0) or (0,)


def cpu_share(pool: NodePool, gpus: int, reserve: Reserve, profile: Profile = "doubling") -> str:
    """The CPUs that go with so many GPUs of a node, in whole ones; without GPUs, the whole node's."""
    rounding = ROUND_CEILING if profile == "ado" else ROUND_FLOOR
    return str(_share(pool.cpu, reserve.cpu, _RESERVED_SHARE, pool, gpus).to_integral_value(rounding))


def memory_share(pool: NodePool, gpus: int, reserve: Reserve, profile: Profile = "doubling") -> str:
    """The memory that goes with so many GPUs of a node, in whole Gi; without GPUs, the whole node's."""
    reserved = _MEMORY_RESERVED_BY_ADO if profile == "ado" else _RESERVED_SHARE
    return f"{_share(pool.memory, reserve.memory, reserved, pool, gpus) // _GI}Gi"


def _share(node: str, reserve: str | None, reserved: Decimal, pool: NodePool, gpus: int) -> Decimal:
    """`reserved`: share of the node that is left free where no reserve is said."""
    whole = amount(node)
    left = whole - (whole * reserved if reserve is None else amount(reserve))
    # Divided last: a third of 48, times three, is less than 48 in decimals.
    return left * gpus / pool.gpus if pool.gpus and gpus else left


def most_replicas(profile: Profile, pool: NodePool, gpus: int) -> int:
    """The most workers of a size that a pool has by its profile."""
    if gpus == pool.gpus:
        return pool.count
    return pool.count * (pool.gpus // gpus if gpus else 1) if profile == "tiling" else _REPLICAS_OF_A_PART


def within(budget: Budget, gpus: int, cpu: str, memory: str) -> int | None:
    """The most workers of a size that a budget has room for; None where it says nothing of what they have."""
    bounds = [(budget.gpus, Decimal(gpus)), (budget.cpu, amount(cpu)), (budget.memory, amount(memory))]
    return min((int(amount(str(most)) // each) for most, each in bounds if most is not None and each > 0), default=None)


def does_not_fit(
    name: str, gpus: int, cpu: str, memory: str, pool: NodePool, path: Path, reserve: Path | None
) -> Iterator[Problem]:
    """Why a node of the pool cannot hold a worker of the group `name`.

    `path`: where its size is said. `reserve`: where it is said what is left free, None where it cannot be.
    """
    if gpus > pool.gpus:
        message = f"it has {gpus} gpus, and a node of pool {pool.pool!r} has {pool.gpus}: lower it"
        yield Problem((*path, "gpus"), gpus, message, "worker-fits-node")
        return
    for field, of_worker, of_node in (("cpu", cpu, pool.cpu), ("memory", memory, pool.memory)):
        if amount(of_worker) > amount(of_node):
            message = (
                f"worker group {name!r} has {field} {of_worker}, more than a node of pool {pool.pool!r} has "
                f"({of_node}): lower it"
            )
            yield Problem((*path, field), of_worker, message, "worker-fits-node")
        elif amount(of_worker) <= 0:
            advice = f"lower reserve.{field}, or set {field} in variants" if reserve else f"set {field}"
            message = (
                f"a node of pool {pool.pool!r} has {field} {of_node}, which leaves nothing for worker group {name!r}: "
                f"{advice}"
            )
            yield Problem((*reserve, field) if reserve else path, None, message, "worker-fits-node")
