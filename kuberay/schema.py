"""What the API server does with a manifest before the operator sees it: the schema of the CRDs, and their defaults.

The CRDs of 1.6.0, 1.6.1 and 1.6.2 are the same. What those of 1.5 lack is in releases.py. Those of 1.7 could not be
had: for 1.7 the ones of 1.6 are used, and a field that they do not know passes unless it looks like a slip of one that
they know. So a wrong field may go unnoticed there, a right one is not refused.
"""

import difflib
import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import jsonschema_rs

from core.problems import Path, Problem

from .context import OperatorContext

Schema = dict[str, Any]

RELEASE = "1.6"
"""The release whose CRDs lie under schemas/ (made by local/crd_schemas.py)."""

NEXT = "1.7"
"""The first release whose fields are not known."""

KINDS = ("RayCluster", "RayJob", "RayService", "RayCronJob")

LATER = {"tlsOptions", "priority"}
"""Fields that came with 1.7 and look like others of 1.6."""

_LIKE, _MUCH_LIKE = 0.6, 0.8
"""How like a known field an unknown one has to be to be taken for a slip of it (difflib's ratio); the second where the
unknown one may be a field of a later release."""

_BITS = 63
"""Bits of the largest number that an API server reads."""

_LISTED = 12
"""So many allowed names are listed at most."""


@dataclass
class Node:
    """A part of the schema, as the walk over a manifest needs it."""

    types: tuple[str, ...] = ()
    """JSON types that are allowed; none: anything."""
    properties: dict[str, "Node"] | None = None
    items: "Node | None" = None
    values: "Node | None" = None
    """Schema of a map's values."""
    defaults: list[tuple[str, Any]] = field(default_factory=list)
    """Defaults of the properties."""
    nullable: bool = False
    default: Any = None
    keys: tuple[str, ...] = ()
    """Fields that tell a list's items apart (`x-kubernetes-list-map-keys`)."""
    distinct: bool = False
    """Whether a list's items must differ (`x-kubernetes-list-type: set`)."""


def stored(body: Mapping[str, Any], operator: OperatorContext) -> tuple[dict[str, Any], list[Problem]]:
    """The manifest as an API server stores it: with the CRD's defaults, without nulls; and what it refuses."""
    node, validator = _kind(body["kind"])
    walk = _Walk(known=not operator.since(NEXT))
    made = walk.object(body, node, ())
    try:
        if not validator.is_valid(made):
            faulty = {problem.path for problem in walk.problems}
            found = map(_of_schema, validator.iter_errors(made))
            walk.problems += [problem for problem in found if problem.path not in faulty]
    except UnicodeEncodeError as error:
        message = f"there is a text that is not Unicode ({error.reason}): write it in UTF-8"
        walk.problems.append(Problem((), None, message, "wrong-type"))
    return made, walk.problems


class _Walk:
    """One pass over a manifest for what JSON Schema has no word for: defaults, nulls, unknown fields, list keys."""

    def __init__(self, known: bool) -> None:
        """Begin without problems. `known`: the schema has all fields of the operator's release."""
        self.problems: list[Problem] = []
        self._known = known

    def object(self, value: Mapping[str, Any], node: Node, path: Path) -> dict[str, Any]:
        properties, values = node.properties, node.values
        made: dict[str, Any] = {}
        for key, each in value.items():
            child = values if properties is None else properties.get(key)
            if child is None:
                self._unknown(key, each, properties or {}, path)
            elif each is None and not child.nullable:
                continue
            elif not isinstance(key, str):
                self._report((*path, key), key, f"the key {key!r} is not text: write it in quotes", "wrong-type")
            else:
                made[key] = each if type(each) is str else self.value(each, child, (*path, key))
        for key, default in node.defaults:
            if key not in made:
                made[key] = default
        return made

    def value(self, value: Any, node: Node, path: Path) -> Any:
        if isinstance(value, list | tuple):
            return self._list(value, node, path) if node.items is not None else []
        # What is a mapping by its class alone is told in a tenth of the time.
        if isinstance(value, (dict, Mapping)):
            return self.object(value, node, path) if node.properties is not None or node.values is not None else {}
        if isinstance(value, int) and value.bit_length() > _BITS:
            self._report(path, value, f"{shown(value)} is too large: give at most {2**_BITS - 1}", "wrong-type")
            return 0
        if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        wanted = NOUNS.get(node.types[0], node.types[0]) if node.types else "text"
        self._report(path, value, f"{shown(value)} is not {wanted}: write it in quotes if it is text", "wrong-type")
        return str(value)

    def _list(self, value: Sequence[Any], node: Node, path: Path) -> list[Any]:
        items = node.items
        assert items is not None
        made = [
            each if type(each) is str else self.value(each, items, (*path, index)) for index, each in enumerate(value)
        ]
        if len(made) > 1 and (node.keys or node.distinct):
            self._duplicates(made, node, path)
        return made

    def _duplicates(self, made: list[Any], node: Node, path: Path) -> None:
        seen = set()
        for index, item in enumerate(made):
            if node.keys and not isinstance(item, dict):
                continue
            names = {key: item[key] for key in node.keys if key in item} if node.keys else item
            identity = repr(names)
            if identity in seen:
                said = ", ".join(f"{key} {value!r}" for key, value in names.items()) if node.keys else repr(item)
                wanted = "give each another" if node.keys else "remove one"
                self._report(
                    (*path, index), names, f"{said or 'an unnamed item'} is there twice: {wanted}", "duplicate-item"
                )
            seen.add(identity)

    def _unknown(self, key: Any, value: Any, known: Mapping[str, Node], path: Path) -> None:
        like = difflib.get_close_matches(str(key), known, 1, _LIKE if self._known else _MUCH_LIKE)
        if not self._known and (key in LATER or not like):
            return
        hint = f"did you mean {like[0]!r}?" if like else _allowed(known)
        self._report((*path, key), value, f"{key!r} is not a field of the CRD here: {hint}", "unknown-field")

    def _report(self, path: Path, value: Any, message: str, rule: str) -> None:
        self.problems.append(Problem(path, value, message, rule))


def _allowed(known: Mapping[str, Node]) -> str:
    names = sorted(known)
    return f"use one of {', '.join(names)}" if 0 < len(names) <= _LISTED else "remove it"


def _of_schema(error: jsonschema_rs.ValidationError) -> Problem:
    path = tuple(error.instance_path)
    rule, message = message_of(error)
    missing = (error.kind.as_dict()["property"],) if error.kind.name == "required" else ()
    return Problem((*path, *missing), None if missing else error.instance, message, rule)


@functools.cache
def _kind(kind: str) -> tuple[Node, jsonschema_rs.Draft202012Validator]:
    definitions = _definitions()
    schema = {"$ref": f"#/$defs/{kind}", "$defs": definitions}
    return _node(kind), jsonschema_rs.Draft202012Validator(schema)


@functools.cache
def _definitions() -> dict[str, Schema]:
    text = resources.files(__package__).joinpath("schemas", f"{RELEASE}.json").read_text()
    return dict(json.loads(text)["$defs"])


@functools.cache
def _node(definition: str) -> Node:
    return _built(_definitions()[definition])


def _built(schema: Schema) -> Node:
    if "$ref" in schema:
        return _node(schema["$ref"].rpartition("/")[2])
    types = schema.get("type", ())
    properties = {name: _built(each) for name, each in schema.get("properties", {}).items()}
    values = schema.get("additionalProperties")
    return Node(
        types=(types,) if isinstance(types, str) else tuple(types),
        # An object without any property takes none.
        properties=None if values is not None or types != "object" else properties,
        items=_built(schema["items"]) if "items" in schema else None,
        values=None if values is None else _built(values),
        defaults=[(name, child.default) for name, child in properties.items() if child.default is not None],
        nullable=bool(schema.get("nullable")),
        default=schema.get("default"),
        keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
        distinct=schema.get("x-kubernetes-list-type") == "set",
    )


NOUNS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "empty",
}
"""What JSON's types are called."""

_LONGEST = 60
"""Characters of a value that a message shows."""

_LARGEST = 128
"""Bits of a number that a message shows: Python writes none of thousands of digits."""


def shown(value: Any) -> str:
    """A value in a message: as YAML would have it, cut where it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > _LARGEST:
        return f"a number of {value.bit_length()} bits"
    text = "null" if value is None else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def message_of(error: jsonschema_rs.ValidationError) -> tuple[str, str]:
    """The rule that a value broke, and the message."""
    kind, value = error.kind, error.instance
    detail = kind.as_dict()
    if kind.name == "required":
        return "required-field", f"{detail['property']!r} is missing: add it"
    if kind.name == "type":
        return "wrong-type", _wrong_type(value, detail)
    if kind.name == "enum":
        options = [str(option) for option in detail["options"]] if isinstance(detail.get("options"), list) else []
        allowed = f"use {' or '.join(filter(None, (', '.join(options[:-1]), options[-1])))}" if options else str(error)
        return "not-allowed-value", f"{shown(value)} is not allowed: {allowed}"
    if kind.name == "pattern":
        return "wrong-format", f"{shown(value)} has not the form that is wanted here: {_form(detail['pattern'])}"
    limits = {
        "minimum": ("less than", "at least"),
        "maximum": ("more than", "at most"),
        "minLength": ("shorter than", "at least"),
        "maxLength": ("longer than", "at most"),
        "minItems": ("shorter than", "at least"),
    }
    if kind.name in limits:
        compared, allowed = limits[kind.name]
        unit = {"L": " characters", "I": " items"}.get(kind.name[3:4], "")
        limit = detail["limit"]
        return "out-of-range", f"{shown(value)} is {compared} {limit}{unit}: give {allowed} {limit}{unit}"
    return "wrong-value", re.sub(r"\s+", " ", error.message)


def _wrong_type(value: Any, detail: dict[str, Any]) -> str:
    types = detail.get("types") or detail.get("type") or ()
    allowed = [types] if isinstance(types, str) else list(types)
    wanted = " or ".join(NOUNS.get(each, each) for each in allowed)
    said = f"{shown(value)} is {_noun(value)}, but {wanted} is wanted"
    if "string" in allowed and isinstance(value, int | float):
        return f'{said}: write it in quotes, "{shown(value)}"'
    if isinstance(value, str) and ({"integer", "number", "boolean"} & set(allowed)):
        return f"{said}: write it without quotes if it is one"
    return said


def _noun(value: Any) -> str:
    types = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return NOUNS[next((name for kind, name in types if isinstance(value, kind)), "null")]


def _form(pattern: str) -> str:
    return "a Kubernetes quantity such as 8, 500m or 64Gi" if "KMGTPE" in pattern else f"a match of {pattern}"
