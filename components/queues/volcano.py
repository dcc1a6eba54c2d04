"""What a queue becomes in Volcano. Pure functions."""

from typing import Any

from .admission import ALLOWED_NAMESPACES, OF_THE_STACK
from .queue import Queue

Body = dict[str, Any]

GROUP = "scheduling.volcano.sh"
API_VERSION = f"{GROUP}/v1beta1"


def volcano_queue(queue: Queue) -> Body:
    """The Queue. Its webhook refuses a guarantee without as much deserved (volcano,
    pkg/webhooks/admission/queues/validate/validate_queue.go), so what is guaranteed is deserved too.
    """
    said = queue.settings
    guarantee = _more_than_nothing(said.guarantee.named)
    deserved = {**guarantee, **_more_than_nothing(said.deserved.named)}
    return {
        "apiVersion": API_VERSION,
        "kind": "Queue",
        "metadata": {
            "name": queue.name,
            "labels": dict(OF_THE_STACK),
            "annotations": {ALLOWED_NAMESPACES: ",".join(queue.namespaces)},
        },
        "spec": {
            "weight": 1 if said.weight is None else said.weight,
            "reclaimable": said.reclaimable,
            "priority": said.priority,
            "dequeueStrategy": said.dequeue_strategy,
            **({"parent": said.parent} if said.parent else {}),
            **({"guarantee": {"resource": guarantee}} if guarantee else {}),
            **({"deserved": deserved} if deserved else {}),
            **({"capability": said.capability.named} if said.capability.named else {}),
        },
    }


def _more_than_nothing(amounts: dict[str, str]) -> dict[str, str]:
    """Volcano compares a 0 with what is not named as if it were more."""
    return {resource: value for resource, value in amounts.items() if value != "0"}
