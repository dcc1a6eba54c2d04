"""The differences between a program's old and new inputs. Inputs after a refresh: the program's values where the live
object agrees, else the live values.

Quantities are the same amount written differently: `1000m` and `1`, or `1024Mi` and `1Gi`
(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from core.quantities import NotAQuantityError, amount
from local.plugins.kubernetes.objects import SERVER_FIELDS, Kind
from local.plugins.kubernetes.replaced_fields import Path, touches
from local.plugins.kubernetes.values import Json

_ABSENT: Any = object()


@dataclass(frozen=True)
class Change:
    """One difference: its path, its kind, and its value (the old one if it is removed)."""

    path: Path
    how: Literal["add", "delete", "update"]
    value: Any

    def replaces(self, fields: list[Path]) -> bool:
        """Whether this changes an immutable field."""
        return any(touches(self.path, self.value, field) for field in fields)


def changes(old: Json, new: Json) -> list[Change]:
    """The differences of two objects without nulls or marks; an unknown value differs from any other.

    Quantities of Kubernetes' own kinds are compared by amount, as the server stores them; custom resources by text.
    """
    return list(_differences((), old, new, Kind.of_object(new).builtin))


def _differences(path: Path, old: Any, new: Any, builtin: bool) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences((*path, key), old.get(key, _ABSENT), new.get(key, _ABSENT), builtin)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            yield from _differences((*path, index), _item(old, index), _item(new, index), builtin)
    elif old is _ABSENT:
        yield Change(path, "add", new)
    elif new is _ABSENT:
        yield Change(path, "delete", old)
    elif not same(old, new) and not (builtin and is_quantity_field(path) and same_amount(old, new)):
        yield Change(path, "update", new)


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else _ABSENT


def same(one: Any, other: Any) -> bool:
    """Equality as in JSON: a boolean is not a number."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def property_path(path: Path) -> str:
    """The path in Pulumi's notation: `spec.containers[0].env`, `metadata.labels["app.kubernetes.io/name"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif any(character in step for character in '."[]'):
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
        else:
            text += f".{step}" if text else step
    return text


_STEP = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+|\*)\]|\.?([^.\[\]"]+)')


def parse_property_path(text: str) -> Path:
    """The inverse of `property_path`; `*` is kept."""
    path: list[str | int] = []
    for quoted, index, key in _STEP.findall(text):
        if index:
            path.append(index if index == "*" else int(index))
        else:
            path.append(key or re.sub(r"\\(.)", r"\1", quoted))
    return tuple(path)


def contains(outer: Path, inner: Path) -> bool:
    """Whether `inner` is at or below `outer`, where `*` matches any step."""
    return len(outer) <= len(inner) and all(a in (b, "*") for a, b in zip(outer, inner, strict=False))


_DROP: Any = object()


def adopted(live: Json) -> Json:
    """Inputs for an object that no program has written yet (import and `.get()`): all fields except the server's.

    For a custom resource only its identity: Pulumi's plugin takes the fields that its own schema knows.
    """
    if not Kind.of_object(live).builtin:
        names = {key: value for key, value in live["metadata"].items() if key in ("name", "namespace")}
        return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": names}
    metadata = {key: value for key, value in live.get("metadata", {}).items() if key not in SERVER_FIELDS}
    kept = ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration")
    if annotations := {key: value for key, value in metadata.pop("annotations", {}).items() if key not in kept}:
        metadata["annotations"] = annotations
    return {key: value for key, value in live.items() if key != "status"} | {"metadata": metadata}


def reconciled(inputs: Json, expected: Json | None, live: Json) -> Json:
    """The inputs (without marks), with the live value wherever another manager has changed it.

    `expected` is the server's result of applying the inputs: it normalizes some values (`1000m` becomes `1`), and its
    defaults are no drift. None: the server gave no result.
    """
    result = _merge((), inputs, expected if expected is not None else inputs, live)
    return result if isinstance(result, dict) else inputs


def _merge(path: Path, configured: Any, expected: Any, live: Any) -> Any:
    if same(expected, live):
        return configured
    if isinstance(configured, dict) and isinstance(live, dict):
        below = expected if isinstance(expected, dict) else {}
        merged = {key: _entry((*path, key), value, below, live) for key, value in configured.items()}
        return {key: value for key, value in merged.items() if value is not _DROP}
    if isinstance(configured, list) and isinstance(live, list):
        expected_items = expected if isinstance(expected, list) else []
        return [
            _merge(
                (*path, index), configured[index], expected_items[index] if index < len(expected_items) else None, item
            )
            if index < len(configured)
            else item
            for index, item in enumerate(live)
        ]
    return configured if is_quantity_field(path) and same_amount(configured, live) else live


def _entry(path: Path, configured: Any, expected: Json, live: Json) -> Any:
    key = path[-1]
    if key not in live:
        return _DROP if key in expected else configured
    return _merge(path, configured, expected.get(key), live[key])


_HOLDERS = frozenset({"allocatable", "capacity", "default", "defaultRequest", "hard", "limits", "overhead", "requests"})
_FIELDS = frozenset({"divisor", "sizeLimit"})


def _amount(value: Any) -> Decimal | None:
    """The number of a quantity, None if it is not a quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return amount(str(value))
    except NotAQuantityError:
        return None


def is_quantity_field(path: tuple[str | int, ...]) -> bool:
    """Whether Kubernetes' own kinds have a quantity at a path, e.g. `spec.hard["requests.cpu"]`."""
    return path[-1] in _FIELDS or (len(path) > 1 and path[-2] in _HOLDERS)


def same_amount(one: Any, other: Any) -> bool:
    return _amount(one) is not None and _amount(one) == _amount(other)
