"""Keeps Kueue's CRDs while there is something of their kinds."""

from collections.abc import Mapping, Sequence

import pulumi

from ..crd_guard import CrdGuardProvider
from ..dynamic import Resource


class KueueCrdGuard(Resource, module="ray-platform", name="KueueCrdGuard"):
    """Its deletion, which comes before that of the CRDs it depends on, asks the API server and fails while there are
    objects of their kinds.
    """

    def __init__(
        self, name: str, args: Mapping[str, Sequence[str] | str | None], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`args`: `resources`, as `components.guard.custom_objects` takes them, and the `context`."""
        super().__init__(CrdGuardProvider("Kueue"), name, {**args}, opts)
