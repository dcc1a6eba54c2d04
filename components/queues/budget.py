"""Conflicts between queues, and RayClusters that can never start in their queue. Pure functions.

Amounts are Kubernetes quantities as numbers, by resource. Each queue's own settings are validated in settings.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from components.queues.settings import Queue, children, key_of, parents_first
from components.tenant.demand import Demand, Group, total
from core.nodes import NodePool, gpu_resources
from core.problems import Problem
from core.quantities import amount, shown

Numbers = Mapping[str, Decimal]
"""Amounts by resource."""


@dataclass(frozen=True)
class Room:
    """The most of a resource that a queue can ever have."""

    most: Decimal

    reason: str
    """The limit that determines it, for messages."""


def on_nodes(pools: Sequence[NodePool]) -> dict[str, Decimal]:
    """The total of all nodes. Other resources are not known."""
    found = {resource: Decimal(0) for resource in ("cpu", "memory", *gpu_resources(pools))} if pools else {}
    for pool in pools:
        for resource, value in (("cpu", pool.cpu), ("memory", pool.memory), (pool.gpu_resource, str(pool.gpus))):
            found[resource] += amount(value) * pool.count
    return found


def problems_of_queues(queues: Sequence[Queue], pools: Sequence[NodePool]) -> list[Problem]:
    """Conflicts between queues, and between queues and nodes; paths are those of the queues."""
    if misplaced := list(_parents(queues)):
        return misplaced
    return [*_children(queues), *_guarantees(queues, pools)]


def rooms(queues: Sequence[Queue], pools: Sequence[NodePool]) -> dict[str, dict[str, Room]]:
    """By queue and resource, the most that the queue can have; resources without a limit are omitted.

    The limits are its capability, those of the queues above it, and the nodes' total less the guarantees of others, as
    in Volcano's realCapability (volcano, pkg/scheduler/plugins/capacity/capacity.go: checkHierarchicalQueue).
    """
    whole = {
        resource: Room(value, f"the nodes have {shown(resource, value)}") for resource, value in on_nodes(pools).items()
    }
    found: dict[str | None, dict[str, Room]] = {None: whole}
    guaranteed = {
        parent: total(each.settings.amounts("guarantee") for each in below)
        for parent, below in children(queues).items()
    }
    for queue in parents_first(queues):
        parent, own = queue.settings.parent, queue.settings.amounts("guarantee")
        room = {
            resource: _reduced(
                resource, above, guaranteed[parent].get(resource, Decimal(0)) - own.get(resource, Decimal(0))
            )
            for resource, above in found[parent].items()
        }
        for resource, most in queue.settings.amounts("capability").items():
            if resource not in room or most <= room[resource].most:
                room[resource] = Room(most, f"capability of queue {queue.name!r} is {shown(resource, most)}")
        found[queue.name] = room
    return {name: room for name, room in found.items() if name is not None}


def beyond_room(name: str, demand: Demand, queue: str, room: Mapping[str, Room]) -> Iterator[Problem]:
    """Why the gang of a RayCluster can never start in a queue with that room, or a worker can never start beside it.

    Paths are in the body of the RayCluster, `()` for the whole of it.
    """
    for resource, limit in room.items():
        gang = demand.gang.get(resource, Decimal(0))
        if gang > limit.most:
            parts = ", ".join(
                f"{group.title} {shown(resource, group.usage[resource] * number)}"
                for group in demand.groups
                if (number := group.least if demand.scales else group.at_first) and group.usage.get(resource)
            )
            message = (
                f"RayCluster {name!r} starts with {resource} {shown(resource, gang)} ({parts}), and queue {queue!r} "
                f"never has more than {shown(resource, limit.most)} ({limit.reason}), so it would wait forever: let "
                "it start with less, or give the queue more"
            )
            yield Problem((), None, message, "gang-fits-queue")
        else:
            yield from (
                _cannot_start(group, resource, gang, queue, limit)
                for group in demand.groups
                if _starts_later(group, demand) and gang + group.usage.get(resource, Decimal(0)) > limit.most
            )


def beyond_quotas(queue: Queue, quotas: Sequence[Numbers]) -> Iterator[Problem]:
    """Guarantees of a queue that exceed the quotas of its namespaces. `quotas`: those of all its namespaces."""
    for resource, guaranteed in queue.settings.amounts("guarantee").items():
        if not quotas or any(resource not in quota for quota in quotas):
            continue
        allowed = sum((quota[resource] for quota in quotas), Decimal(0))
        if guaranteed > allowed:
            message = (
                f"{shown(resource, guaranteed)} of {resource} are kept free for queue {queue.name!r}, and the quota of "
                f"its namespaces ({', '.join(queue.namespaces)}) is {shown(resource, allowed)}, so the rest could "
                "not be used: lower guarantee, or raise the quota"
            )
            yield Problem((*queue.path, "guarantee", key_of(resource)), None, message, "guarantee-within-quota")


def _parents(queues: Sequence[Queue]) -> Iterator[Problem]:
    above = {queue.name: queue.settings.parent for queue in queues}
    for queue in queues:
        parent, path = queue.settings.parent, (*queue.path, "parent")
        if parent is not None and parent not in above:
            known = ", ".join(sorted(above.keys() - {queue.name})) or "none"
            message = f"queue {parent!r} is not in queues: use an existing one ({known}), or add it"
            yield Problem(path, parent, message, "unknown-queue")
        elif parent is not None and _is_in_cycle(queue, above):
            message = f"queue {queue.name!r} is its own ancestor, through {parent!r}: remove the parent of one of them"
            yield Problem(path, parent, message, "queue-above-itself")


def _is_in_cycle(queue: Queue, above: Mapping[str, str | None]) -> bool:
    """Whether a queue is its own ancestor. `above`: parents by the names of their children."""
    at = above.get(queue.name)
    for _ in above:
        if at is None or at == queue.name:
            break
        at = above.get(at)
    return at == queue.name


def _children(queues: Sequence[Queue]) -> Iterator[Problem]:
    """Amounts of children, in total or each, that exceed their parent.

    The rules are those of Volcano's webhook (validate_queue.go: validateHierarchicalQueueResources): a resource that
    the parent does not name counts as 0. If the parent sets no guarantee, or no deserved, its capability limits the
    children's.
    """
    families = children(queues)
    for parent in queues:
        below = families[parent.name]
        limits = {part: parent.settings.amounts(part) for part in ("guarantee", "deserved", "capability")}
        for part in ("guarantee", "deserved"):
            limit_part = part if limits[part] else "capability"
            if not limits[limit_part]:
                continue
            for resource, taken in total(child.settings.amounts(part) for child in below).items():
                if taken > (limit := limits[limit_part].get(resource, Decimal(0))):
                    shares = ", ".join(
                        f"{child.name} {shown(resource, value)}"
                        for child in below
                        if (value := child.settings.amounts(part).get(resource))
                    )
                    message = (
                        f"{part} of the queues below {parent.name!r} is {shown(resource, taken)} of {resource} in "
                        f"total ({shares}), and its own {limit_part} is {shown(resource, limit)}: raise it, or lower "
                        f"{part} of these queues"
                    )
                    yield Problem((*parent.path, limit_part), None, message, "children-within-parent")
        for child in below:
            for resource, most in child.settings.amounts("capability").items():
                if most > (limit := limits["capability"].get(resource, Decimal(0))):
                    has = f"has {shown(resource, limit)}" if resource in limits["capability"] else "does not set it"
                    message = (
                        f"capability {shown(resource, most)} of {resource} is more than that of its parent "
                        f"{parent.name!r}, which {has}: lower it, or raise the parent's"
                    )
                    yield Problem(
                        (*child.path, "capability", key_of(resource)), None, message, "children-within-parent"
                    )


def _guarantees(queues: Sequence[Queue], pools: Sequence[NodePool]) -> Iterator[Problem]:
    """Guarantees that exceed the nodes' total."""
    above_all = children(queues)[None]
    for resource, available in on_nodes(pools).items():
        parts = {queue.name: queue.settings.amounts("guarantee").get(resource, Decimal(0)) for queue in above_all}
        if (taken := sum(parts.values(), Decimal(0))) > available:
            shares = ", ".join(f"{name} {shown(resource, value)}" for name, value in parts.items() if value)
            message = (
                f"{shown(resource, taken)} of {resource} are guaranteed ({shares}), and the nodes have "
                f"{shown(resource, available)}: lower guarantees, or add nodes"
            )
            last = next(queue for queue in reversed(above_all) if parts[queue.name])
            yield Problem((*last.path, "guarantee", key_of(resource)), None, message, "guarantees-fit-nodes")


def _reduced(resource: str, above: Room, taken: Decimal) -> Room:
    if not taken:
        return above
    reason = f"{above.reason}, of which {shown(resource, taken)} are guaranteed to other queues"
    return Room(max(above.most - taken, Decimal(0)), reason)


def _starts_later(group: Group, demand: Demand) -> bool:
    """Whether all workers of the group start after the gang."""
    return demand.scales and group.least == 0 and group.most != 0


def _cannot_start(group: Group, resource: str, gang: Decimal, queue: str, limit: Room) -> Problem:
    message = (
        f"a worker of {group.title} takes {resource} {shown(resource, group.usage[resource])} beside the "
        f"{shown(resource, gang)} that the cluster starts with, and queue {queue!r} never has more than "
        f"{shown(resource, limit.most)} ({limit.reason}), so none could start: give the queue more, or remove the "
        "group"
    )
    return Problem(group.path, None, message, "worker-fits-queue")
