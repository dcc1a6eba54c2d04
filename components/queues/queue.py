"""A queue of a stack: what is said of it, and who may use it."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..problems import Path
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


def children(queues: Iterable[Queue], parent: str | None) -> list[Queue]:
    """The queues right below one; below None, those that name no parent."""
    return [queue for queue in queues if queue.settings.parent == parent]


def parents_first(queues: Iterable[Queue]) -> list[Queue]:
    """The queues, each after its parent; those without a parent that is there, or in a circle, are left out."""
    there = list(queues)
    ordered = children(there, None)
    for queue in ordered:
        ordered += children(there, queue.name)
    return ordered
