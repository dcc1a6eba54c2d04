"""A queue of a stack: what is said of it, and who may use it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.problems import Path

from .settings import QueueSettings


@dataclass(frozen=True)
class Queue:
    """A queue that the stack makes."""

    name: str

    settings: QueueSettings

    namespaces: tuple[str, ...] = ()
    """Namespaces that may use it."""

    path: Path = ()
    """Where it is said."""

    of_tenant: bool = False
    """Whether it is a tenant's own, called as its namespace."""


def children(queues: Iterable[Queue]) -> Mapping[str | None, list[Queue]]:
    """By a queue's name those right below it; by None, those that name no parent."""
    found: dict[str | None, list[Queue]] = defaultdict(list)
    for queue in queues:
        found[queue.settings.parent].append(queue)
    return found


def parents_first(queues: Iterable[Queue]) -> list[Queue]:
    """The queues, each after its parent; those without a parent that is there, or in a circle, are left out."""
    below = children(queues)
    ordered = list(below[None])
    for queue in ordered:
        ordered += below[queue.name]
    return ordered
