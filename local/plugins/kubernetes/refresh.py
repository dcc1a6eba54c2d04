"""Inputs after a refresh: the program's values where the live object agrees, else the live values."""

from typing import Any

from local.plugins.kubernetes.diff import same
from local.plugins.kubernetes.objects import SERVER_FIELDS, Kind
from local.plugins.kubernetes.quantity import is_quantity_field, same_amount
from local.plugins.kubernetes.replaced_fields import Path
from local.plugins.kubernetes.values import Json

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
