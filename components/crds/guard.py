"""Blocks CRD deletion while custom resources exist; see docs/decisions/0002-crd-guard.md."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import AMBIENT, ClusterUnreachableError, Connection
from components.dynamic import Resource
from components.guard import GuardProvider, InUseError, custom_objects, named
from components.kubernetes_cluster import cluster_of
from core.body import Body

_SECONDS = 30.0
"""Seconds for the garbage collector to delete dependents of objects that have just been deleted."""


def _any(_body: Body) -> bool:
    """Counts every object. The state refers to a function by its name. A lambda would be stored with the path of its
    file, so a checkout in another folder would be a difference."""
    return True


class CrdGuardProvider(GuardProvider):
    """Refuses the deletion while objects of the kinds in its input `resources` exist (`guard.custom_objects`)."""

    def __init__(self, owner: str, counts: Callable[[Body], bool] = _any) -> None:
        """`owner`: the program of the CRDs, in messages. `counts`: whether an object blocks the deletion."""
        super().__init__()
        self._owner = owner
        self._counts = counts

    def refuse(self, props: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + _SECONDS
        while used := self._in_use(props):
            if time.monotonic() > deadline or not all(_has_owner(body) for body in used):
                raise InUseError(
                    f"{self._owner}'s CRDs are not deleted while there is {named(used)}: these would be deleted with "
                    "them. Delete them first, with kubectl or with the stack that they belong to, then run the command "
                    "again"
                )
            time.sleep(1.0)

    def _in_use(self, props: Mapping[str, Any]) -> list[Body]:
        try:
            existing = custom_objects(cluster_of(props), props["resources"])
        except ClusterUnreachableError as error:
            raise InUseError(
                f"{self._owner}'s CRDs are not deleted, because it cannot be determined whether they are used: {error}"
            ) from None
        return [body for body in existing if self._counts(body)]


@dataclass(frozen=True)
class CrdGuardArgs:
    """Arguments of CrdGuard."""

    provider: CrdGuardProvider

    resources: list[str]
    """The kinds, as for `components.guard.custom_objects`."""

    connection: Connection = AMBIENT


class CrdGuard(Resource, module="ray-platform", name="CrdGuard"):
    """Is deleted before all resources that it depends on. The deletion fails while objects of its kinds exist."""

    def __init__(self, name: str, args: CrdGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(args.provider, name, {"resources": args.resources, **args.connection.inputs()}, opts)


def _has_owner(body: Mapping[str, Any]) -> bool:
    return bool(body["metadata"].get("ownerReferences"))
