"""Edits of a RayCluster: the fields that differ, what an edit of a field can mean, and a rule for it. Pure functions.

Items of lists are compared by name, so that a new first item does not make all others differ.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from core.quantities import NotAQuantityError, amount

Steps = tuple[str, ...]
"""A path in a body: keys, and names of the items of lists."""

REST = "**"
ANY = "*"
"""Steps of a rule's path: everything below, and any one step."""


class Verdict(StrEnum):
    """In order of harm, the least first."""

    NOTHING = "nothing"
    IN_PLACE = "in place"
    CREATES = "creates"
    REMOVES = "removes"
    """Nothing that runs or is stored is lost with it."""
    NEW_PODS = "only new pods"
    """Running pods stay as they are until each is recreated."""
    IGNORED = "not applied"
    """KubeRay accepts the edit, but never applies it."""
    ROLLING = "rolling"
    REFUSED = "fails"
    """`pulumi up` ends with an error; running pods stay as they are."""
    STRANDS = "strands new workers"
    """Running pods continue; new workers cannot join the head."""
    ORPHANS = "orphans pods"
    """Pods keep running, with their GPUs, but nothing counts or deletes them."""
    ENDS = "ends pods"
    RECREATES = "recreates pods"
    REPLACES = "deletes and recreates"
    DELETES = "deletes"

    @property
    def harm(self) -> int:
        """Its position in the order of harm."""
        return list(Verdict).index(self)

    @property
    def hurts(self) -> bool:
        """Whether the edit stops, loses or disconnects something that runs."""
        return self.harm >= Verdict.STRANDS.harm


@dataclass(frozen=True)
class Rule:
    """The effect of editing the fields at `path`."""

    path: str
    """`*` matches any one step. `**` at the end matches everything below, and the field itself."""

    verdict: Verdict

    text: str
    """What happens. `{groups}`: the worker groups of these fields."""

    reason: str

    safer: str = ""

    source: str = ""

    scaling: bool | None = None
    """Applies only with the autoscaler (True) or without it (False). None: to both."""

    pods: Literal["head", "workers", "all"] | None = None
    """Which pods the field configures; a RayCluster's `updates` decide when the edit reaches them."""

    def matches(self, path: Steps, scales: bool) -> bool:
        """Whether the rule applies to a path in a RayCluster's spec."""
        if self.scaling is not None and self.scaling != scales:
            return False
        pattern = self.path.split(".")
        below = pattern[-1] == REST
        pattern = pattern[:-1] if below else pattern
        if len(path) < len(pattern) or (len(path) > len(pattern) and not below):
            return False
        return all(expected in (ANY, step) for expected, step in zip(pattern, path, strict=False))


WORKER_GROUP_DEFAULTS: dict[str, Any] = {"replicas": 0, "minReplicas": 0, "maxReplicas": 2**31 - 1, "numOfHosts": 1}
"""Defaults of a worker group (kuberay, ray-operator/apis/ray/v1/raycluster_types.go: WorkerGroupSpec)."""

_EMPTY = frozenset({"labels", "annotations", "nodeSelector", "limits", "requests", "rayStartParams", "resources"})
"""Keys for which an empty mapping means the same as no mapping."""

_NAMES = ("name", "groupName", "mountPath", "containerPort", "key")


def differences(before: Any, after: Any, at: Steps = ()) -> Iterator[Steps]:
    """The paths of all leaves that differ, and of those that exist in only one of the bodies."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            if key in before and key in after:
                yield from differences(before[key], after[key], (*at, key))
            else:
                # If only one of them has the list: its items.
                items = _named(before.get(key, after.get(key)))
                yield from ((*at, key, item) for item in items) if items else [(*at, key)]
        return
    named = _named(before), _named(after)
    if named[0] is not None and named[1] is not None:
        if named[0] == named[1]:
            # The same items in another order.
            yield at
        yield from differences(*named, at)
    else:
        yield at


def _named(items: Any) -> dict[str, Any] | None:
    """The items of a list by their names; None if it is not a list, or the names are missing or not unique."""
    if not isinstance(items, Sequence) or isinstance(items, str) or not all(isinstance(i, Mapping) for i in items):
        return None
    for key in _NAMES:
        if items and all(key in item for item in items):
            found = {str(item[key]): item for item in items}
            return found if len(found) == len(items) else None
    return None if items else {}


def normal(value: Any, key: str = "") -> Any:
    """A spec as KubeRay stores it after reading: with defaults, without empty values, and quantities in one
    notation."""
    if isinstance(value, Mapping):
        if key in ("limits", "requests"):
            return {name: _quantity(each) for name, each in value.items()}
        found = {name: normal(each, name) for name, each in value.items()}
        found = {name: each for name, each in found.items() if not _is_empty(name, each)}
        return {**WORKER_GROUP_DEFAULTS, **found} if "groupName" in found else found
    if isinstance(value, list | tuple):
        return [normal(each) for each in value]
    return value


def _is_empty(key: str, value: Any) -> bool:
    default = key == "protocol" and value == "TCP"
    return default or value is None or value == [] or (value == {} and key in _EMPTY)


def _quantity(value: Any) -> Any:
    """KubeRay keeps both the notation, in powers of two or of ten, and the number (k8s.io/apimachinery,
    pkg/api/resource/quantity.go: MarshalJSON)."""
    try:
        return json.dumps([float(amount(str(value))), str(value).endswith("i")])
    except NotAQuantityError:
        return value
