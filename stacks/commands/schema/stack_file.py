"""The JSON Schema of a stack file, for editors. Generated from the models; `check` validates more than a schema can.

It contains KubeRay's own fields, so that editors complete `overrides` and `podTemplate`. These are a strategic merge
patch on the derived spec: no field is required, null removes a field, `$patch` an item. Unknown fields are allowed,
because a later KubeRay may have them; `check` validates against the operator's version.
"""

import functools
import json
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from core.docstrings import field_docs
from core.stack_file import EXTENDS, PROJECT
from stacks.settings import StackSettings

NAME = "stack-file.schema.json"

FILE = Path(__file__).parents[3] / NAME
"""The committed schema; the first line of a stack file names it."""

BASE_FILE = FILE.with_name("base.schema.json")
"""The committed schema of bases (core/stack_file.py), whose required keys may be in the files that extend them."""

DRAFT = "http://json-schema.org/draft-07/schema#"
"""The draft that yaml-language-server supports best."""

Schema = dict[str, Any]

PULUMIS_OWN: Schema = {
    "secretsprovider": {"type": "string", "description": "What encrypts the stack's secrets."},
    "encryptedkey": {"type": "string", "description": "Key of the secrets, encrypted by secretsprovider."},
    "encryptionsalt": {"type": "string", "description": "Salt of the passphrase that encrypts the secrets."},
    "environment": {"type": ["array", "object"], "description": "Pulumi ESC environments that are imported."},
}
"""Keys that Pulumi keeps in a stack file beside `config` (pkg/workspace, ProjectStack)."""

RELEASE = "1.6"
"""The release of KubeRay whose CRDs are used."""

_PREFIX = "KubeRay."

_LARGEST = 2**31 - 1
"""From this value on, a bound only reflects the integer's storage type."""

_DIRECTIVE: Schema = {"$patch": {"enum": ["delete", "replace"]}}

_PART = "Part"
"""Prefix of the definitions for files that are merged, of which each has a part of the settings."""

_INSTRUCTION: Schema = {
    "enum": ["delete", "replace"],
    "description": "`delete`: the item of this name is removed from the base's list. `replace`, alone in an item: the "
    "list replaces the base's.",
}


class _ForEditors(GenerateJsonSchema):
    """Describes keys as a user would write them: no nulls for missing keys, no titles derived from names."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        if described.get("default") in (None, [], {}) or isinstance(described["default"], dict):
            return {key: value for key, value in described.items() if key != "default"}
        return described

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        described = {key: value for key, value in super().model_schema(schema).items() if key != "title"}
        model: type[BaseModel] = schema["cls"]
        for name, text in field_docs(model).items():
            described["properties"][model.model_fields[name].alias or name].setdefault("description", text)
        return described

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        described = super().dict_schema(schema)
        return {**described, "additionalProperties": False} if "patternProperties" in described else described


def stack_file_schema() -> Schema:
    """The schema of a whole `Pulumi.STACK.yaml`. Keys of other programs under `config` may have any value."""
    settings = StackSettings.model_json_schema(
        by_alias=True, ref_template="#/definitions/{model}", schema_generator=_ForEditors
    )
    config = {
        "type": ["object", "null"],
        "description": f"Settings by key; the program's own are under `{PROJECT}:`.",
        "properties": {f"{PROJECT}:{key}": value for key, value in settings["properties"].items()},
        "patternProperties": {f"^(?!{PROJECT}:).+:": {}},
        "additionalProperties": False,
        "required": [f"{PROJECT}:{key}" for key in settings.get("required", [])],
    }
    whole = {name: _with_kuberays_words(model) for name, model in settings["$defs"].items()}
    extended = f"{PROJECT}:{EXTENDS}"
    schema = {
        "$schema": DRAFT,
        "title": f"Stack file of {PROJECT}",
        "type": "object",
        "properties": {key: {"description": value["description"]} for key, value in PULUMIS_OWN.items()},
        "if": {"required": ["config"], "properties": {"config": {"type": "object", "required": [extended]}}},
        "then": {"properties": {"config": _partial(config), **PULUMIS_OWN}, "additionalProperties": False},
        "else": {"properties": {"config": config, **PULUMIS_OWN}, "additionalProperties": False},
        "definitions": {
            **whole,
            _PART: {
                "type": "object",
                "properties": {"config": _partial({**config, "patternProperties": {}})},
                "additionalProperties": False,
            },
            f"{_PART}.$patch": _INSTRUCTION,
            **{f"{_PART}.{name}": _partial(model) for name, model in whole.items()},
            **{f"{_PREFIX}{name}": _patch(part) for name, part in _crds().items() if not name.startswith("Ray")},
        },
    }
    return dict(_in_lines(schema))


def base_schema() -> Schema:
    """The schema of a base, which refers to that of stack files."""
    return {
        "$schema": DRAFT,
        "title": f"Base of stack files of {PROJECT}",
        "$ref": f"./{NAME}#/definitions/{_PART}",
    }


def _partial(schema: Any) -> Any:
    """The schema of a part of what a schema describes: no key is required, null removes one of a base, `$patch` an
    item."""
    if isinstance(schema, list):
        return [_partial(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    ours = "#/definitions/"
    if (target := schema.get("$ref", "")) and not target.startswith(f"{ours}{_PREFIX}"):
        return {**schema, "$ref": f"{ours}{_PART}.{target.removeprefix(ours)}"}
    found = {key: _partial(value) for key, value in schema.items() if key not in ("required", "properties")}
    if "properties" in schema:
        found["properties"] = {key: _or_null(_partial(value)) for key, value in schema["properties"].items()}
        found["properties"]["$patch"] = {"$ref": f"#/definitions/{_PART}.$patch"}
    return found


def _or_null(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "enum" in schema or "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return {**schema, "type": list(dict.fromkeys([*types, "null"]))}


def _with_kuberays_words(model: Schema) -> Schema:
    """A model whose settings with KubeRay's own fields refer to KubeRay's schema."""
    words = _kuberay_settings()
    described = {
        key: {"description": value["description"], **words[key]} if key in words else value
        for key, value in model.get("properties", {}).items()
    }
    return {**model, **({"properties": described} if described else {})}


def _in_lines(value: Any) -> Any:
    """The schema with each paragraph of a docstring in one line, so that editors wrap it."""
    if isinstance(value, list):
        return [_in_lines(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: paragraphs(item) if key == "description" and isinstance(item, str) else _in_lines(item)
        for key, item in value.items()
    }


def paragraphs(docstring: str) -> str:
    """A docstring with each of its paragraphs in one line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))


def schema_text() -> str:
    return _text(stack_file_schema())


def base_schema_text() -> str:
    return _text(base_schema())


def _text(schema: Schema) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


@functools.cache
def _kuberay_settings() -> Schema:
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
    return patch | {key: schema[key] for key in ("minimum", "maximum") if abs(schema.get(key, _LARGEST)) < _LARGEST}
