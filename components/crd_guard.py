"""Keeps CRDs while there is something of their kinds; see docs/decisions/0002-crd-guard.md."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .cluster import ClusterUnreachableError
from .guard import GuardProvider, InUseError, custom_objects, named

Body = dict[str, Any]

_SECONDS = 30.0
"""How long the garbage collector may take for what belongs to objects that have just been deleted."""


class CrdGuardProvider(GuardProvider):
    """Refuses to go while there are objects of the kinds that its input `resources` names (`guard.custom_objects`)."""

    def __init__(self, owner: str, counts: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> None:
        """`owner`: whose CRDs they are, in messages. `counts`: whether an object is somebody's."""
        super().__init__()
        self._owner = owner
        self._counts = counts

    def refuse(self, props: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + _SECONDS
        while used := self._in_use(props):
            if time.monotonic() > deadline or not all(_goes_with_its_owner(body) for body in used):
                raise InUseError(
                    f"{self._owner}'s CRDs are not deleted while there is {named(used)}: these would be deleted with "
                    "them. Delete them first, with kubectl or with the stack that they belong to, then run the command "
                    "again"
                )
            time.sleep(1.0)

    def _in_use(self, props: Mapping[str, Any]) -> list[Body]:
        try:
            there = custom_objects(props.get("context"), props["resources"])
        except ClusterUnreachableError as error:
            raise InUseError(f"cannot tell whether {self._owner}'s CRDs are in use, so they stay: {error}") from None
        return [body for body in there if self._counts(body)]


def resources_of(crds: Iterable[Mapping[str, Any]]) -> list[str]:
    """The kinds of CRDs, as `components.guard.custom_objects` takes them, in the versions that are stored: others may
    take a webhook that is gone."""
    found = []
    for body in crds:
        spec = body["spec"]
        version = next(each["name"] for each in spec["versions"] if each["storage"])
        found.append(f"{spec['names']['plural']}.{version}.{spec['group']}")
    return found


def _goes_with_its_owner(body: Mapping[str, Any]) -> bool:
    return bool(body["metadata"].get("ownerReferences"))
