"""The annotation `pulumi.com/waitFor`: the status that makes an object ready.

`jsonpath={.status.state}=ready` (or without a value: any value), `condition=Type` or `condition=Type=Status`, or a JSON
array of several. https://www.pulumi.com/registry/packages/kubernetes/ (section on await logic)
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from local.plugins.kubernetes.errors import RefusedError
from local.plugins.kubernetes.objects import annotation, at
from local.plugins.kubernetes.values import Json

ANNOTATION = "pulumi.com/waitFor"

_TOKEN = re.compile(
    r"""\.(?P<key>(?:[^.\[\]\\{}]|\\.)+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \['(?P<single>[^']*)'\] | \["(?P<double>[^"]*)"\]
      | \[\?\(\s*@\.(?P<field>[\w.-]+)\s*==\s*(?P<literal>"[^"]*"|'[^']*'|[^\s)]+)\s*\)\]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Expectation:
    """One condition on an object: its text, and how to check it."""

    text: str
    path: tuple[re.Match[str], ...] = ()
    value: str = ""
    condition: str = ""

    def seen(self, obj: Json) -> tuple[bool, str]:
        """Whether the object meets the condition, and a text for people with its actual value."""
        observed = at(obj, "status", "observedGeneration")
        generation = at(obj, "metadata", "generation")
        if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
            return False, f"{self.text} (the controller has not seen the change yet)"
        found = self._condition(obj) if self.condition else _select(obj, self.path)
        if not found:
            return False, f"{self.text} (not set)"
        first = found[0]
        if not self.value:
            return True, self.text
        if isinstance(first, dict | list):
            raise RefusedError(
                f"{ANNOTATION}: {self.text} selects a whole {_type(first)}, which has no value to compare"
            )
        actual = _text(first)
        return actual == self.value, f'{self.text} (found "{actual}")'

    def _condition(self, obj: Json) -> list[Any]:
        conditions = at(obj, "status", "conditions") or []
        return [entry.get("status") for entry in conditions if entry.get("type") == self.condition]


def expectations(obj: Json) -> list[Expectation]:
    """The conditions in the object's annotation; empty without one.

    Raises:
        RefusedError: the annotation cannot be read.
    """
    configured = annotation(obj, ANNOTATION)
    if not configured:
        return []
    try:
        several = json.loads(configured)
    except ValueError:
        several = [configured]
    if not isinstance(several, list) or not several or not all(isinstance(item, str) for item in several):
        raise RefusedError(f"{ANNOTATION}: expected one condition or a JSON array of conditions, got {configured!r}")
    return [_parse(item) for item in several]


def _parse(text: str) -> Expectation:
    how, _, rest = text.partition("=")
    if how == "condition" and rest:
        condition, _, status = rest.partition("=")
        return Expectation(text, condition=condition, value=status or "True")
    if how == "jsonpath":
        return _parse_jsonpath(text, rest)
    raise RefusedError(f'{ANNOTATION}: expected a "jsonpath=" or "condition=" prefix, got {text!r}')


def _parse_jsonpath(text: str, rest: str) -> Expectation:
    match = re.fullmatch(r"\{\s*\$?(.*?)\s*\}(?:=(.*))?", rest, re.DOTALL)
    if match is None:
        raise RefusedError(f"{ANNOTATION}: write jsonpath={{.path}} or jsonpath={{.path}}=value, got {text!r}")
    path, value = match.groups()
    if value == "":
        raise RefusedError(f"{ANNOTATION}: {text!r} ends with '=', but has no value")
    tokens: list[re.Match[str]] = []
    position = 0
    while position < len(path):
        token = _TOKEN.match(path, position)
        if token is None:
            raise RefusedError(
                f"{ANNOTATION}: cannot read {path[position:]!r} in {text!r}; a path is made of .field, ['field'], [0], "
                '[*] and [?(@.field=="value")]'
            )
        tokens.append(token)
        position = token.end()
    return Expectation(text, tuple(tokens), value or "")


def _select(obj: Json, path: tuple[re.Match[str], ...]) -> list[Any]:
    found: list[Any] = [obj]
    for token in path:
        found = [below for value in found for below in _step(value, token)]
    return found


def _step(value: Any, token: re.Match[str]) -> list[Any]:
    part = token.groupdict()
    if part["key"] is not None or part["single"] is not None or part["double"] is not None:
        key = part["single"] or part["double"] or re.sub(r"\\(.)", r"\1", part["key"] or "")
        return [value[key]] if isinstance(value, dict) and key in value else []
    if part["all"]:
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if not isinstance(value, list):
        return []
    if part["index"] is not None:
        index = int(part["index"])
        return [value[index]] if -len(value) <= index < len(value) else []
    expected = part["literal"].strip("\"'")
    return [item for item in value if _text(at(item, *part["field"].split("."))) == expected]


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _type(value: Any) -> str:
    return "list" if isinstance(value, list) else "mapping"
