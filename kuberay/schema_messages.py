"""What a fault against the CRDs' schema is called, in words for people."""

import re
from typing import Any

import jsonschema_rs

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
