"""What the settings of priorities become in Kubernetes. Pure functions."""

from typing import Any

from .settings import PriorityClassesSettings

Body = dict[str, Any]

HEAD = 1000
"""Above pods of no class, which have 0 unless the cluster has a default: a head that is lost takes with it what ran on
all of its workers, and has to come back when they, or others, fill the nodes."""

WORKER = 0
"""As pods of no class have it: workers wait in turn with everybody else, evict nobody of equal standing, and give way
to what matters more. With a class of their own they stay below the heads even where the cluster has a default."""


def priority_classes(settings: PriorityClassesSettings) -> list[Body]:
    """The PriorityClasses that the stack makes."""
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
