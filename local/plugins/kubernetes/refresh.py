"""What a refresh makes of the inputs: as the program wrote them where the live object agrees, else the live value."""

import base64
import binascii
from typing import Any

from local.plugins.kubernetes.diff import same
from local.plugins.kubernetes.objects import SECRET, SERVER_FIELDS, Kind
from local.plugins.kubernetes.quantity import is_quantity_field, same_amount
from local.plugins.kubernetes.replaced_fields import Path
from local.plugins.kubernetes.values import Json

_DROP: Any = object()


def adopted(live: Json) -> Json:
    """Inputs for an object that no program has written yet (import and `.get()`): all that is not the server's.

    Of a custom resource only what names it: Pulumi's plugin takes the fields that its own schema knows.
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
    """The inputs (without marks), with the live value wherever somebody else has changed it.

    `expected` is what the server would make of applying the inputs: it writes some values in another way than the
    program does (`1000m` becomes `1`), and what it would write anyway is no drift. None: the server could not say.
    """
    result = _merge((), inputs, expected if expected is not None else inputs, live)
    if Kind.of_object(inputs) == SECRET and isinstance(inputs.get("stringData"), dict):
        result["stringData"] = _string_data(inputs["stringData"], live.get("data") or {})
    return result if isinstance(result, dict) else inputs


def _merge(path: Path, said: Any, expected: Any, live: Any) -> Any:
    if same(expected, live):
        return said
    if isinstance(said, dict) and isinstance(live, dict):
        below = expected if isinstance(expected, dict) else {}
        merged = {key: _entry((*path, key), value, below, live) for key, value in said.items()}
        return {key: value for key, value in merged.items() if value is not _DROP}
    if isinstance(said, list) and isinstance(live, list):
        wanted = expected if isinstance(expected, list) else []
        return [
            _merge((*path, index), said[index], wanted[index] if index < len(wanted) else None, item)
            if index < len(said)
            else item
            for index, item in enumerate(live)
        ]
    return said if is_quantity_field(path) and same_amount(said, live) else live


def _entry(path: Path, said: Any, expected: Json, live: Json) -> Any:
    key = path[-1]
    if key not in live:
        # What the server would not store either (a Secret's stringData) says nothing by being absent.
        return _DROP if key in expected and key != "stringData" else said
    return _merge(path, said, expected.get(key), live[key])


def _string_data(said: Json, data: Json) -> Json:
    """A Secret's `stringData`, which the server stores as `data` and does not return."""
    return {
        key: value if _encoded(value) == data[key] else _decoded(data[key])
        for key, value in said.items()
        if key in data
    }


def _encoded(value: Any) -> str:
    return base64.b64encode(str(value).encode()).decode()


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        # Not text: what is there is shown as it is stored.
        return value
