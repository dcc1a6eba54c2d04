"""How great a worker is that a pool's nodes can hold. Pure functions."""

from collections.abc import Iterator
from decimal import Decimal

from ..nodes import NodePool
from ..problems import Path, Problem
from ..quantities import amount
from .node_settings import Reserve

_GI = Decimal(2**30)
_RESERVED_SHARE = Decimal(1) / 16


def doubling(gpus: int) -> tuple[int, ...]:
    """The sizes of workers on a node: powers of two below its GPUs, and all of them. 6: 1, 2, 4, 6. 0: 0."""
    if gpus == 0:
        return (0,)
    return (*(2**power for power in range((gpus - 1).bit_length())), gpus)


def cpu_share(pool: NodePool, gpus: int, reserve: Reserve) -> str:
    """The CPUs that go with so many GPUs of a node, in whole ones; without GPUs, the whole node's."""
    return str(_share(pool.cpu, reserve.cpu, pool, gpus, Decimal(1)))


def memory_share(pool: NodePool, gpus: int, reserve: Reserve) -> str:
    """The memory that goes with so many GPUs of a node, in whole Gi; without GPUs, the whole node's."""
    return f"{_share(pool.memory, reserve.memory, pool, gpus, _GI)}Gi"


def _share(node: str, reserve: str | None, pool: NodePool, gpus: int, unit: Decimal) -> int:
    whole = amount(node)
    reserved = whole * _RESERVED_SHARE if reserve is None else amount(reserve)
    share = Decimal(gpus) / pool.gpus if pool.gpus and gpus else Decimal(1)
    return int((whole - reserved) * share // unit)


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
