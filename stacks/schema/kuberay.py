"""KubeRay's own fields in the JSON Schema of a stack file, so that editors complete `overrides` and `podTemplate`.

They are a strategic merge patch on the derived spec: no field is required, null removes a field, `$patch` an item.
Unknown fields are allowed, because a later KubeRay may have them; `check` validates against the operator's version.
"""

import functools
import json
from importlib import resources
from typing import Any

Schema = dict[str, Any]

RELEASE = "1.6"
"""The release of KubeRay whose CRDs are used."""

_PREFIX = "KubeRay."

_GREATEST = 2**31 - 1
"""From this value on, a bound only reflects the integer's storage type."""

_DIRECTIVE: Schema = {"$patch": {"enum": ["delete", "replace"]}}


def definitions() -> Schema:
    """All parts of KubeRay's schema, under unique names."""
    return {f"{_PREFIX}{name}": _patch(part) for name, part in _crds().items() if not name.startswith("Ray")}


@functools.cache
def settings() -> Schema:
    """The schemas of settings that contain KubeRay's own fields, by their keys."""
    spec = _at(_crds()["RayCluster"], "spec")
    template = _at(spec, "headGroupSpec", "template")
    pod = _at(template, "spec")
    container = _resolved(_at(pod, "containers"))["items"]
    return {
        "overrides": _patch(spec),
        "podTemplate": _patch(template),
        "volumes": _patch(_at(pod, "volumes")),
        "volumeMounts": _patch(_at(container, "volumeMounts")),
    }


@functools.cache
def _crds() -> Schema:
    text = resources.files("kuberay").joinpath("schemas", f"{RELEASE}.json").read_text(encoding="utf-8")
    return dict(json.loads(text)["$defs"])


def _at(schema: Schema, *keys: str) -> Schema:
    """The schema of a nested field, as a reference if it is one."""
    for key in keys:
        schema = _resolved(schema)["properties"][key]
    return schema


def _resolved(schema: Schema) -> Schema:
    return _crds()[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _patch(schema: Schema) -> Schema:
    """The schema of a patch for an object with the given schema."""
    if "$ref" in schema:
        return {"$ref": f"#/definitions/{_PREFIX}{schema['$ref'].rpartition('/')[2]}"}
    patch: Schema = {}
    if types := schema.get("type"):
        patch["type"] = [*([types] if isinstance(types, str) else types), "null"]
    if "enum" in schema:
        patch["enum"] = [*schema["enum"], None]
    if "properties" in schema:
        patch["properties"] = {**{key: _patch(part) for key, part in schema["properties"].items()}, **_DIRECTIVE}
    if isinstance(values := schema.get("additionalProperties"), dict):
        patch["additionalProperties"] = _patch(values)
    if "items" in schema:
        patch["items"] = _patch(schema["items"])
    patch |= {key: schema[key] for key in ("pattern", "minLength", "maxLength") if key in schema}
    return patch | {key: schema[key] for key in ("minimum", "maximum") if abs(schema.get(key, _GREATEST)) < _GREATEST}
