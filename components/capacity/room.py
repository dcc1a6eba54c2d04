"""Pods that no node of the stack file can hold, and workers for which its pools have no room. Pure functions.

Only what is certain: each RayCluster is judged alone, on empty nodes. stacks/planning places all of them together.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from decimal import Decimal

from components.capacity.limits import eligible
from components.capacity.placement import RESOURCES, Workers, capacity, held
from components.tenant.demand import Group
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Problem
from core.quantities import shown

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
        possible = eligible(workers.spec, pools) or tuple(pools)
        room = sum(pool.count * held(workers, pool) for pool in possible)
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
    needed = zip(RESOURCES, workers.amounts, strict=False)
    most = [max(capacity(pool)[at] for pool in pools) for at in range(len(RESOURCES))]
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
