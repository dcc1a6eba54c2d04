"""Generates the schemas of kuberay/schemas from the CRDs of the operator's Go module.

`python -m local.crd_schemas` writes them. A CRD repeats a pod's template for each kind of group and has nearly a
megabyte; here equal parts occur once, and descriptions are removed.
"""

import copy
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from components.crds.decoding import decodable
from local import paths
from local.tools import KUBERAY

Schema = dict[str, Any]

FOLDER = paths.ROOT / "kuberay" / "schemas"

VERSION = "v1"
"""The version of the CRDs that the program uses."""

KEPT = (
    "type", "required", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "pattern", "default",
    "nullable", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
)  # fmt: skip
"""Keywords that are copied unchanged."""

ONE_OF = re.compile(r"self in \[(.*)\]")
"""A CEL rule of the CRDs that is equivalent to an enum."""

IN_CODE = {
    "self == oldSelf",
    "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
    "((has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules))",
    "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
    "has(self.jobStatus) || has(self.jobDeploymentStatus)",
}
"""CEL rules of the CRDs that kuberay/ray_job.py implements, and the one on changes, which a manifest alone cannot
violate. A rule that is in neither place stops the generator."""

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}

METADATA: Schema = {
    "type": "object",
    "default": {},
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
        **{
            name: {"type": "string"}
            for name in ("generateName", "creationTimestamp", "deletionTimestamp", "resourceVersion", "selfLink", "uid")
        },
        **{name: {"type": "integer"} for name in ("generation", "deletionGracePeriodSeconds")},
        "managedFields": {"type": "array", "items": {}},
        "ownerReferences": {"type": "array", "items": {}},
    },
}
"""An object's metadata (apimachinery: ObjectMeta), for which CRDs have no schema."""


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    target().write_text(generate(KUBERAY.share("config") / "crd" / "bases"))


def target() -> Path:
    """The file of the schema of the pinned operator's release."""
    return FOLDER / f"{KUBERAY.version.removeprefix('v').rpartition('.')[0]}.json"


def generate(folder: Path) -> str:
    """The schema of all kinds whose CRDs are in a folder: `$defs` has each kind under its name."""
    kinds = dict(sorted(_kind(file) for file in folder.glob("*.yaml")))
    definitions = _Definitions(list(kinds.values()))
    named = {kind: definitions.shared(schema, kind, definition=True) for kind, schema in kinds.items()}
    document = {"$defs": {**named, **dict(sorted(definitions.parts.items()))}}
    return json.dumps(document, separators=(",", ":"), sort_keys=True) + "\n"


def _kind(file: Path) -> tuple[str, Schema]:
    crd = yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]
    schema = next(each["schema"]["openAPIV3Schema"] for each in crd["versions"] if each["name"] == VERSION)
    kind = crd["names"]["kind"]
    made = _plain(decodable(schema))
    made["properties"] |= {
        "apiVersion": {"enum": [f"{crd['group']}/{VERSION}"]},
        "kind": {"enum": [kind]},
        "metadata": METADATA,
        # The API server ignores the status of a created object.
        "status": {},
    }
    made["required"] = ["apiVersion", "kind", "spec"]
    return kind, made


def _plain(schema: Schema) -> Schema:
    """A CRD's schema as JSON Schema, with the Kubernetes keywords that kuberay/schema.py reads."""
    made = {keyword: schema[keyword] for keyword in KEPT if keyword in schema}
    if schema.get("x-kubernetes-int-or-string"):
        made["type"] = ["integer", "string"]
    for rule in (each["rule"] for each in schema.get("x-kubernetes-validations", ())):
        if one_of := ONE_OF.fullmatch(rule):
            made["enum"] = [value.strip(" '") for value in one_of[1].split(",")]
        elif rule not in IN_CODE:
            raise ValueError(f"no counterpart of the CRDs' rule {rule!r}: add it to kuberay")
    if "properties" in schema:
        made["properties"] = {name: _plain(each) for name, each in schema["properties"].items()}
    if "items" in schema:
        made["items"] = _plain(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _plain(schema["additionalProperties"])
    return made


class _Definitions:
    """Parts that occur in several places, each once, under the name of the field where it was found first."""

    WORTH = 100
    """The number of characters from which on a part gets a name."""

    def __init__(self, schemas: list[Schema]) -> None:
        self.parts: dict[str, Schema] = {}
        self._names: dict[str, str] = {}
        self._seen: Counter[str] = Counter()
        for schema in schemas:
            self._count(schema)

    def _count(self, schema: Schema) -> None:
        self._seen[_text(schema)] += 1
        if self._seen[_text(schema)] == 1:
            for child in _children(schema):
                self._count(child)

    def shared(self, schema: Schema, field: str, definition: bool = False) -> Schema:
        """The schema with references for parts that occur in several places."""
        text = _text(schema)
        if not definition and self._seen[text] > 1 and len(text) >= self.WORTH:
            if text not in self._names:
                self._names[text] = name = self._free(field)
                self.parts[name] = self.shared(schema, field, definition=True)
            return {"$ref": f"#/$defs/{self._names[text]}"}
        made = copy.copy(schema)
        if "properties" in schema:
            made["properties"] = {name: self.shared(each, name) for name, each in schema["properties"].items()}
        for keyword in ("items", "additionalProperties"):
            if keyword in schema:
                made[keyword] = self.shared(schema[keyword], field)
        return made

    def _free(self, field: str) -> str:
        names = set(self._names.values())
        return next(name for name in (field, *(f"{field}{n}" for n in range(2, 1000))) if name not in names)


def _children(schema: Schema) -> list[Schema]:
    nested = [schema[keyword] for keyword in ("items", "additionalProperties") if keyword in schema]
    return [*schema.get("properties", {}).values(), *nested]


def _text(schema: Schema) -> str:
    return json.dumps(schema, sort_keys=True)


if __name__ == "__main__":
    main()
