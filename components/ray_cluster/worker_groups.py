"""Which sizes of worker a pool of nodes is cut into. Pure functions."""

from dataclasses import dataclass
from decimal import Decimal

from ..nodes import NodePool
from ..quantities import amount
from .settings import Reserve, Variant, WorkersSettings

_GI = Decimal(2**30)
_RESERVED_SHARE = Decimal(1) / 16
_REPLICAS_OF_A_PART = 2
"""Two workers of one size use as many GPUs as one of the next, so a third is never needed (ado, "Best Practices for
Efficient GPU Resource Utilization")."""


@dataclass(frozen=True)
class WorkerGroup:
    """One size of worker. Amounts are Kubernetes quantities, of one worker."""

    name: str
    gpus: int
    cpu: str
    memory: str
    min_replicas: int
    max_replicas: int

    whole_node: bool
    """The worker has all GPUs of a node: it offers the Ray resource `full-worker`."""


def doubling(gpus: int) -> tuple[int, ...]:
    """The sizes of workers on a node: powers of two below its GPUs, and all of them. 6: 1, 2, 4, 6. 0: 0."""
    if gpus == 0:
        return (0,)
    return (*(2**power for power in range((gpus - 1).bit_length())), gpus)


def worker_groups(pool: NodePool, settings: WorkersSettings) -> tuple[WorkerGroup, ...]:
    """The worker groups of a pool, smallest first as derived, or in the order of `variants`.

    Raises ValueError where a variant does not fit on a node, or nothing is left for a worker.
    """
    variants = settings.variants or tuple(Variant(gpus=gpus) for gpus in doubling(pool.gpus))
    return tuple(_group(pool, variant, settings.reserve) for variant in variants)


def _group(pool: NodePool, variant: Variant, reserve: Reserve) -> WorkerGroup:
    if variant.gpus > pool.gpus:
        raise ValueError(
            f"a variant has {variant.gpus} gpus, and a node of pool {pool.pool!r} has {pool.gpus}: lower it"
        )
    share = Decimal(variant.gpus) / pool.gpus if pool.gpus and variant.gpus else Decimal(1)
    whole_node = variant.gpus == pool.gpus
    group = WorkerGroup(
        name=variant.name or f"{pool.pool}-{f'{variant.gpus}gpu' if variant.gpus else 'cpu'}",
        gpus=variant.gpus,
        cpu=variant.cpu or str(_share_of(pool.cpu, reserve.cpu, share, Decimal(1))),
        memory=variant.memory or f"{_share_of(pool.memory, reserve.memory, share, _GI)}Gi",
        min_replicas=variant.min_replicas,
        max_replicas=_max_replicas(pool, variant),
        whole_node=whole_node and pool.gpus > 0,
    )
    _check(pool, group)
    return group


def _max_replicas(pool: NodePool, variant: Variant) -> int:
    if variant.max_replicas is not None:
        return variant.max_replicas
    return pool.count if variant.gpus == pool.gpus else _REPLICAS_OF_A_PART


def _share_of(node: str, reserve: str | None, share: Decimal, unit: Decimal) -> int:
    """Whole units of a node's amount, less what is reserved, that a worker gets."""
    whole = amount(node)
    reserved = whole * _RESERVED_SHARE if reserve is None else amount(reserve)
    return int((whole - reserved) * share // unit)


def _check(pool: NodePool, group: WorkerGroup) -> None:
    for field, of_worker, of_node in (("cpu", group.cpu, pool.cpu), ("memory", group.memory, pool.memory)):
        if amount(of_worker) > amount(of_node):
            raise ValueError(
                f"worker group {group.name!r} has {field} {of_worker}, more than a node of pool {pool.pool!r} has "
                f"({of_node}): lower it"
            )
        if amount(of_worker) <= 0:
            raise ValueError(
                f"a node of pool {pool.pool!r} has {field} {of_node}, which leaves nothing for worker group "
                f"{group.name!r}: lower reserve.{field}, or set {field} in variants"
            )
    if group.min_replicas > group.max_replicas:
        raise ValueError(
            f"worker group {group.name!r} has minReplicas {group.min_replicas} and maxReplicas {group.max_replicas}: "
            "lower minReplicas or raise maxReplicas"
        )
