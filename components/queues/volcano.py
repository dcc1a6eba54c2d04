"""Renders queues into objects of Volcano. Pure functions."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from core.problems import Problem

from .admission import ALLOWED_NAMESPACES, OF_THE_STACK
from .queue import Queue

Body = dict[str, Any]

GROUP = "scheduling.volcano.sh"
API_VERSION = f"{GROUP}/v1beta1"


def volcano_queue(queue: Queue) -> Body:
    """The Queue. Volcano's webhook refuses a guarantee that is more than `deserved` (volcano,
    pkg/webhooks/admission/queues/validate/validate_queue.go), so the guarantee is added to `deserved`.
    """
    settings = queue.settings
    guarantee = _more_than_nothing(settings.guarantee.named)
    deserved = {**guarantee, **_more_than_nothing(settings.deserved.named)}
    return {
        "apiVersion": API_VERSION,
        "kind": "Queue",
        "metadata": {
            "name": queue.name,
            "labels": dict(OF_THE_STACK),
            "annotations": {ALLOWED_NAMESPACES: ",".join(queue.namespaces)},
        },
        "spec": {
            "weight": 1 if settings.weight is None else settings.weight,
            "reclaimable": settings.reclaimable,
            "priority": settings.priority,
            "dequeueStrategy": settings.dequeue_strategy,
            **({"parent": settings.parent} if settings.parent else {}),
            **({"guarantee": {"resource": guarantee}} if guarantee else {}),
            **({"deserved": deserved} if deserved else {}),
            **({"capability": settings.capability.named} if settings.capability.named else {}),
        },
    }


def problems_with_volcano(queues: Sequence[Queue], shares: Literal["proportion", "capacity"]) -> Iterator[Problem]:
    """Queue settings that Volcano does not read; paths are those of the queues.

    They depend on the plugin that shares the cluster among queues:

    pkg/scheduler/plugins/proportion/proportion.go reads weights, but neither `deserved` nor parents;
    pkg/scheduler/plugins/capacity/capacity.go reads `deserved` and parents, but no weights.
    """
    other = "proportion" if shares == "capacity" else "capacity"
    for queue in queues:
        settings = queue.settings
        # A weight of 1 is the same as no weight.
        unread = (
            {"weight": (settings.weight or 1) > 1}
            if shares == "capacity"
            else {"deserved": bool(settings.deserved.named), "parent": settings.parent is not None}
        )
        for key, is_set in unread.items():
            if is_set:
                message = (
                    f"says nothing to Volcano while its queueShares are {shares}: remove it, or set "
                    f"scheduler.volcano.scheduler.queueShares to {other}"
                )
                yield Problem((*queue.path, key), None, message, "queue-shares")
        for part in ("guarantee", "deserved", "capability"):
            if getattr(settings, part).gpus_by_product:
                message = "Volcano counts GPUs of all products together: say gpus"
                yield Problem((*queue.path, part, "gpusByProduct"), None, message, "gpus-by-product")


def _more_than_nothing(amounts: dict[str, str]) -> dict[str, str]:
    """The amounts other than 0: Volcano treats 0 as more than an amount that is not set."""
    return {resource: value for resource, value in amounts.items() if value != "0"}
