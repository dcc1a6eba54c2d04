"""The owners of a live object's fields, and updates that respect them.

https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""

from typing import Any

from local.plugins.kubernetes.diff import parse_property_path
from local.plugins.kubernetes.objects import at
from local.plugins.kubernetes.values import Json

CREATOR = "pulumi-kubernetes"
"""The manager of an object's first write, which is a plain create, as in Pulumi's plugin since 4.29."""

_TAKEN_OVER = (
    ("kubectl", "Apply"),
    ("kubectl", "Update"),
    ("before-first-apply", "Update"),
    (CREATOR, "Update"),
    ("pulumi-resource-kubernetes", "Update"),
)
"""Managers (by prefix) whose fields the first apply takes over, as Pulumi's plugin does."""


def created_by_us(live: Json) -> bool:
    """Whether the plain create still owns fields, so that an apply would conflict with ourselves."""
    return any(
        entry.get("operation") == "Update" and entry.get("manager") in (CREATOR, "pulumi-resource-kubernetes")
        for entry in managed(live)
    )


def managed(live: Json) -> list[Json]:
    return at(live, "metadata", "managedFields") or []


def take_over(live: Json, manager: str) -> list[Json]:
    """The JSON patch that gives `manager` the fields of its predecessors; empty if there are none.

    The patch includes the object's version, so that it fails instead of reverting another write.
    """
    taken = [entry for entry in managed(live) if _is_taken_over(entry)]
    if not taken:
        return []
    ours = next((e for e in managed(live) if e["manager"] == manager and e["operation"] == "Apply"), None)
    fields: Json = {}
    for entry in [*([ours] if ours else []), *taken]:
        fields = _union(fields, entry.get("fieldsV1", {}))
    merged = (ours or taken[0]) | {"manager": manager, "operation": "Apply", "fieldsV1": fields}
    kept = [entry for entry in managed(live) if entry is not ours and entry not in taken]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [merged, *kept]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


def _is_taken_over(entry: Json) -> bool:
    return not entry.get("subresource") and any(
        entry["manager"].startswith(name) and entry["operation"] == operation for name, operation in _TAKEN_OVER
    )


def _union(one: Json, other: Json) -> Json:
    return one | {key: _union(one.get(key, {}), value) for key, value in other.items()}


def leave_ignored(inputs: Json, live: Json, manager: str, ignored: list[str]) -> Json:
    """The inputs for an update that ignores some fields (`ignore_changes`).

    A field that only other managers own is removed; any other gets its live value. Paths through lists are used
    unchanged: the engine has put the old input there.
    """
    ours = _owned(entry for entry in managed(live) if entry["manager"] == manager)
    owned_by_others = _owned(entry for entry in managed(live) if entry["manager"] != manager)
    result = inputs
    for path in map(parse_property_path, ignored):
        if not path or not all(isinstance(step, str) for step in path):
            continue
        keys = [str(step) for step in path]
        marks = [f"f:{key}" for key in keys]
        if at(owned_by_others, *marks) is not None and at(ours, *marks) is None:
            result = _without(result, keys)
        elif (value := at(live, *keys)) is not None:
            result = _with(result, keys, value)
    return result


def _owned(entries: Any) -> Json:
    fields: Json = {}
    for entry in entries:
        fields = _union(fields, entry.get("fieldsV1", {}))
    return fields


def _without(obj: Json, keys: list[str]) -> Json:
    key, *rest = keys
    if not isinstance(obj.get(key), dict) or not rest:
        return {name: value for name, value in obj.items() if rest or name != key}
    return obj | {key: _without(obj[key], rest)}


def _with(obj: Json, keys: list[str], value: Any) -> Json:
    key, *rest = keys
    below = obj.get(key)
    return obj | {key: _with(below if isinstance(below, dict) else {}, rest, value) if rest else value}
