"""Keeps Volcano's CRDs while there is something of their kinds; see docs/decisions/0002-crd-guard.md."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import Resource

from ..cluster import ClusterUnreachableError
from ..guard import GuardProvider, InUseError, custom_objects, named

OF_THE_SCHEDULER = ("root", "default")
"""Queues that the scheduler makes itself when it starts (pkg/scheduler/cache/cache.go)."""

_SECONDS = 30.0
"""How long the garbage collector may take for PodGroups whose RayClusters have just been deleted."""


class _Provider(GuardProvider):
    def refuse(self, props: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + _SECONDS
        while used := self._in_use(props):
            if time.monotonic() > deadline or not all(_goes_with_its_owner(body) for body in used):
                raise InUseError(
                    f"Volcano's CRDs are not deleted while there is {named(used)}: these would be deleted with them. "
                    "Delete them first, with kubectl or with the stack that they belong to, then run the command again"
                )
            time.sleep(1.0)

    def _in_use(self, props: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            there = custom_objects(props.get("context"), props["resources"])
        except ClusterUnreachableError as error:
            raise InUseError(f"cannot tell whether Volcano's CRDs are in use, so they stay: {error}") from None
        return [body for body in there if not (_is_queue(body) and body["metadata"]["name"] in OF_THE_SCHEDULER)]


class VolcanoCrdGuard(Resource, module="ray-platform", name="VolcanoCrdGuard"):
    """Its deletion, which comes before that of the CRDs it depends on, asks the API server and fails while there are
    objects of their kinds.
    """

    def __init__(
        self, name: str, args: Mapping[str, Sequence[str] | str | None], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`args`: `resources`, as `components.guard.custom_objects` takes them, and the `context`."""
        super().__init__(_Provider(), name, {**args}, opts)


def _is_queue(body: Mapping[str, Any]) -> bool:
    return str(body["kind"]).lower() in ("queue", "queues")


def _goes_with_its_owner(body: Mapping[str, Any]) -> bool:
    return bool(body["metadata"].get("ownerReferences"))
