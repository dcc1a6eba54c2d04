"""Keeps Volcano's CRDs while there is something of their kinds."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from ..crd_guard import CrdGuardProvider
from ..dynamic import Resource

OF_THE_SCHEDULER = ("root", "default")
"""Queues that the scheduler makes itself when it starts (pkg/scheduler/cache/cache.go)."""


class VolcanoCrdGuard(Resource, module="ray-platform", name="VolcanoCrdGuard"):
    """Its deletion, which comes before that of the CRDs it depends on, asks the API server and fails while there are
    objects of their kinds.
    """

    def __init__(
        self, name: str, args: Mapping[str, Sequence[str] | str | None], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`args`: `resources`, as `components.guard.custom_objects` takes them, and the `context`."""
        super().__init__(CrdGuardProvider("Volcano", _is_somebodys), name, {**args}, opts)


def _is_somebodys(body: Mapping[str, Any]) -> bool:
    is_queue = str(body["kind"]).lower() in ("queue", "queues")
    return not (is_queue and body["metadata"]["name"] in OF_THE_SCHEDULER)
