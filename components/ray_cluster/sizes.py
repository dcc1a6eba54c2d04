"""Sizes and numbers of the workers of a pool. Pure functions.

A derived size gets at most its GPUs' share of a node's CPUs and memory, after the reserve. So workers that fit on a
node by GPUs also fit by CPUs and memory. `profile: ado` rounds CPUs up, so it does not guarantee that.
"""

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from components.ray_cluster.node_settings import Budget, Profile, Reserve
from core.nodes import NodePool
from core.problems import Path, Problem
from core.quantities import amount

_GI = Decimal(2**30)
_RESERVED_SHARE = Decimal(1) / 16
_MEMORY_RESERVED_BY_ADO = Decimal(1) / 5
"""ado's figures for nodes of 64 CPUs, 1000Gi and 8 GPUs are 8, 15, 30 and 60 CPUs and 100Gi for each GPU ("Deploying
Kuberay and creating a RayCluster"): CPUs less a sixteenth, rounded up, and memory less a fifth."""

_REPLICAS_OF_A_PART = 2
"""Two workers of one size use as many GPUs as one of the next, so a third is never needed (ado, "Best Practices for
Efficient GPU Resource Utilization")."""


def sizes(profile: Profile, gpus: int) -> tuple[int, ...]:
    """GPUs of each worker size on a node with that number of GPUs, smallest first. 0: one worker without GPUs."""
    return tiling(gpus) if profile == "tiling" else doubling(gpus)


def doubling(gpus: int) -> tuple[int, ...]:
    """Powers of two below the node's GPUs, and all its GPUs. 6: 1, 2, 4, 6. 0: 0."""
    if gpus == 0:
        return (0,)
    return (*(2**power for power in range((gpus - 1).bit_length())), gpus)


def tiling(gpus: int) -> tuple[int, ...]:
    """The divisors of the node's GPUs. 8: 1, 2, 4, 8. 6: 1, 2, 3, 6. 0: 0."""
    return tuple(size for size in range(1, gpus + 1) if gpus % size == 0) or (0,)


def cpu_share(pool: NodePool, gpus: int, reserve: Reserve, profile: Profile = "doubling") -> str:
    """The share of a node's CPUs for that number of GPUs, in whole CPUs; without GPUs, all CPUs of the node."""
    rounding = ROUND_CEILING if profile == "ado" else ROUND_FLOOR
    return str(_share(pool.cpu, reserve.cpu, _RESERVED_SHARE, pool, gpus).to_integral_value(rounding))


def memory_share(pool: NodePool, gpus: int, reserve: Reserve, profile: Profile = "doubling") -> str:
    """The share of a node's memory for that number of GPUs, in whole Gi; without GPUs, all memory of the node."""
    reserved = _MEMORY_RESERVED_BY_ADO if profile == "ado" else _RESERVED_SHARE
    return f"{_share(pool.memory, reserve.memory, reserved, pool, gpus) // _GI}Gi"


def _share(node: str, reserve: str | None, reserved: Decimal, pool: NodePool, gpus: int) -> Decimal:
    """`reserved`: share of the node that is left free if no reserve is set."""
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
    """The most workers of a size that a budget allows; None if it does not limit their resources."""
    bounds = [(budget.gpus, Decimal(gpus)), (budget.cpu, amount(cpu)), (budget.memory, amount(memory))]
    return min((int(amount(str(most)) // each) for most, each in bounds if most is not None and each > 0), default=None)


def does_not_fit(
    name: str, gpus: int, cpu: str, memory: str, pool: NodePool, path: Path, reserve: Path | None
) -> Iterator[Problem]:
    """Why a node of the pool cannot hold a worker of the group `name`.

    `path`: of the setting with its size. `reserve`: of the setting with the reserve; None if there is no such setting.
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
