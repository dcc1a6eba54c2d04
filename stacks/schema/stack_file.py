"""The JSON Schema of a stack file, for editors. Generated from the models; `check` validates more than a schema can."""

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from core.stack_file import PROJECT

from ..settings import StackSettings
from . import kuberay

FILE = Path(__file__).parents[2] / "stack-file.schema.json"
"""The committed schema; the first line of a stack file names it."""

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
        return {key: value for key, value in super().model_schema(schema).items() if key != "title"}

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
    schema = {
        "$schema": DRAFT,
        "title": f"Stack file of {PROJECT}",
        "type": "object",
        "properties": {"config": config, **PULUMIS_OWN},
        "additionalProperties": False,
        "definitions": {
            **{name: _with_kuberays_words(model) for name, model in settings["$defs"].items()},
            **kuberay.definitions(),
        },
    }
    return dict(_in_lines(schema))


def _with_kuberays_words(model: Schema) -> Schema:
    """A model whose settings with KubeRay's own fields refer to KubeRay's schema."""
    words = kuberay.settings()
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
    """The text of the committed schema."""
    return json.dumps(stack_file_schema(), indent=1, ensure_ascii=False) + "\n"
