"""What a queue becomes in Volcano. Pure functions."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from core.problems import Problem

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


def problems_with_volcano(queues: Sequence[Queue], shares: Literal["proportion", "capacity"]) -> Iterator[Problem]:
    """What queues say that Volcano does not read; paths are those of the queues.

    Which of it is a matter of the plugin that shares the cluster among them:

    pkg/scheduler/plugins/proportion/proportion.go reads weights, and neither what is deserved nor parents;
    pkg/scheduler/plugins/capacity/capacity.go reads these, and no weights.
    """
    other = "proportion" if shares == "capacity" else "capacity"
    for queue in queues:
        said = queue.settings
        # With a weight of 1 each, queues share as those do that have none.
        unread = (
            {"weight": (said.weight or 1) > 1}
            if shares == "capacity"
            else {"deserved": bool(said.deserved.named), "parent": said.parent is not None}
        )
        for key, is_said in unread.items():
            if is_said:
                message = (
                    f"says nothing to Volcano while its queueShares are {shares}: remove it, or set "
                    f"scheduler.volcano.scheduler.queueShares to {other}"
                )
                yield Problem((*queue.path, key), None, message, "queue-shares")
        for part in ("guarantee", "deserved", "capability"):
            if getattr(said, part).gpus_by_product:
                message = "Volcano counts GPUs of all products together: say gpus"
                yield Problem((*queue.path, part, "gpusByProduct"), None, message, "gpus-by-product")


def _more_than_nothing(amounts: dict[str, str]) -> dict[str, str]:
    """Volcano compares a 0 with what is not named as if it were more."""
    return {resource: value for resource, value in amounts.items() if value != "0"}
