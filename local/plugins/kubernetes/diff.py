"""The differences between a program's old and new inputs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from local.plugins.kubernetes.objects import Kind
from local.plugins.kubernetes.quantity import is_quantity_field, same_amount
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
