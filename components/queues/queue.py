"""A queue of a stack: its settings and its namespaces."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.problems import Path

from .settings import QueueSettings


@dataclass(frozen=True)
class Queue:
    """A queue that the stack creates."""

    name: str

    settings: QueueSettings

    namespaces: tuple[str, ...] = ()
    """Namespaces that may use it."""

    path: Path = ()
    """Path of its settings."""

    of_tenant: bool = False
    """Whether it is a tenant's own queue, with the name of the tenant's namespace."""


def children(queues: Iterable[Queue]) -> Mapping[str | None, list[Queue]]:
    """The children of each queue by its name; under None, the queues without a parent."""
    found: dict[str | None, list[Queue]] = defaultdict(list)
    for queue in queues:
        found[queue.settings.parent].append(queue)
    return found


def parents_first(queues: Iterable[Queue]) -> list[Queue]:
    """The queues, each after its parent. Queues with an unknown parent or in a cycle are omitted."""
    below = children(queues)
    ordered = list(below[None])
    for queue in ordered:
        ordered += below[queue.name]
    return ordered
