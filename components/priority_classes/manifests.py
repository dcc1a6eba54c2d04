"""Renders the settings of priorities into PriorityClasses. Pure functions."""

from typing import Any

from .settings import PriorityClassesSettings

Body = dict[str, Any]

HEAD = 1000
"""Above pods without a class, which have 0 unless the cluster has a default. The loss of a head ends the work on all
its workers, and the head must start again on nodes that are full of workers or other pods."""

WORKER = 0
"""The same as pods without a class: workers wait with all other pods, do not evict pods of equal priority, and may be
evicted for more important pods. With their own class they stay below the heads even if the cluster has a default."""


def priority_classes(settings: PriorityClassesSettings) -> list[Body]:
    """The PriorityClasses that the stack creates."""
    if settings.install != "manifests":
        return []
    return [
        _priority_class(settings.head, HEAD, "Heads of RayClusters: a lost one takes the work of its workers with it."),
        _priority_class(settings.worker, WORKER, "Workers of RayClusters: after their heads, as pods of no class."),
    ]


def _priority_class(name: str, value: int, description: str) -> Body:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description,
    }
