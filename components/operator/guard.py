"""Keeps KubeRay's CRDs while there is something of their kinds; see docs/decisions/0002-crd-guard.md."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import Resource

from ..cluster import ClusterUnreachableError
from ..guard import GuardProvider, InUseError, kuberay_objects, named


class _Provider(GuardProvider):
    def refuse(self, props: Mapping[str, Any]) -> None:
        try:
            used = kuberay_objects(props.get("context"), props["kinds"])
        except ClusterUnreachableError as error:
            raise InUseError(f"cannot tell whether KubeRay's CRDs are in use, so they stay: {error}") from None
        if used:
            raise InUseError(
                f"KubeRay's CRDs are not deleted while there is {named(used)}: these would be deleted with them. "
                "Delete them first, with kubectl or with the stack that they belong to, then run the command again"
            )


class CrdGuard(Resource, module="ray-platform", name="CrdGuard"):
    """Its deletion, which comes before that of the CRDs it depends on, asks the API server and fails while there are
    objects of their kinds.
    """

    def __init__(
        self, name: str, args: Mapping[str, str | list[str] | None], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(_Provider(), name, {**args}, opts)
