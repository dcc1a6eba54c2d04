"""The annotation `pulumi.com/waitFor`: the status that makes an object ready.

`jsonpath={.status.state}=ready` (or without a value: any value), `condition=Type` or `condition=Type=Status`, or a JSON
array of several. What is accepted, and the messages, are those of Pulumi's plugin (pulumi-kubernetes 4.32:
provider/pkg/metadata/overrides.go, provider/pkg/jsonpath/jsonpath.go, provider/pkg/await/condition). Its paths are
those of RFC 9535; here a filter is one comparison.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from local.plugins.kubernetes.diff import same
from local.plugins.kubernetes.errors import RefusedError
from local.plugins.kubernetes.objects import annotation, at
from local.plugins.kubernetes.values import Json

ANNOTATION = "pulumi.com/waitFor"

_NAME = r"[^\W\d]\w*"
_TOKEN = re.compile(
    rf"""\.(?P<key>{_NAME})
      | \[(?P<index>-?\d+)\]
      | (?P<all>\[\*\]|\.\*)
      | \['(?P<single>[^']*)'\] | \["(?P<double>[^"]*)"\]
      | \[\?\(\s*@\.(?P<field>{_NAME}(?:\.{_NAME})*)\s*==\s*(?P<literal>"[^"]*"|'[^']*'|-?\d+|true|false)\s*\)\]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Value:
    """A field, by its path as written and as read, and its expected value; empty: any."""

    path: str
    tokens: tuple[re.Match[str], ...]
    value: str

    def seen(self, obj: Json) -> tuple[bool, str]:
        """Whether the object has the value, and a text for people with the actual one.

        Raises:
            RefusedError: the actual value is a list or a mapping, which is not compared.
        """
        awaited = f"{self.path}={self.value}" if self.value else self.path
        if _is_before(obj, at(obj, "status", "observedGeneration")):
            return False, f"Waiting for {awaited} (the controller has not seen the change yet)"
        found = _select(obj, self.tokens)
        if not found:
            return False, f"{self.path} selected nothing"
        if not self.value:
            return True, f"Found {awaited}"
        if isinstance(found[0], dict | list):
            raise RefusedError(f"{json.dumps(self.path)} has a non-primitive value ({json.dumps(found[0])})")
        actual = _text(found[0])
        return actual == self.value, f"Waiting for {awaited} (found {json.dumps(actual)})"


@dataclass(frozen=True)
class Condition:
    """An entry of `status.conditions`; its type and status are compared without regard to case."""

    type: str
    status: str

    def seen(self, obj: Json) -> tuple[bool, str]:
        """Whether the object has the condition, and a text for people with the actual one."""
        conditions = at(obj, "status", "conditions")
        if conditions is None:
            return False, "Has no .status.conditions"
        entry = next((each for each in conditions if _alike(each.get("type", ""), self.type)), None)
        if entry is None:
            return False, f"Waiting for condition {self.type}={self.status}"
        if _is_before(obj, entry.get("observedGeneration", at(obj, "status", "observedGeneration"))):
            return False, f"Waiting for condition {self.type} (the controller has not seen the change yet)"
        status = entry.get("status", "")
        return _alike(status, self.status), f"Resource has condition {self.type}={status} (want {self.status})"


Expectation = Value | Condition


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
        several = None
    if several == []:
        raise RefusedError(f"{ANNOTATION}: at least one condition must be specified")
    if not isinstance(several, list) or not all(isinstance(item, str) for item in several):
        several = [configured]
    return [_parse(item) for item in several]


def _parse(text: str) -> Expectation:
    how, _, rest = text.partition("=")
    if how == "jsonpath":
        return _parse_value(rest)
    if how == "condition" and rest:
        condition, _, status = rest.partition("=")
        return Condition(condition, status or "True")
    raise RefusedError(f'{ANNOTATION}: expected a "jsonpath=" or "condition=" prefix, got {json.dumps(text)}')


def _parse_value(text: str) -> Expectation:
    path, *values = re.split("(?<!=)=(?!=)", text)
    if len(values) > 1:
        raise RefusedError(f"{ANNOTATION}: format should be {{.path}}=value or {{.path}}, got {json.dumps(text)}")
    if values == [""]:
        raise RefusedError(f"{ANNOTATION}: {path}= requires a value")
    if path.startswith("'") and path.endswith("'"):
        raise RefusedError(f"{ANNOTATION}: {path} should omit shell quotes")
    inner = re.search(r"\{\s*(.*?)\s*\}", path)
    if inner is None:
        raise RefusedError(f"{ANNOTATION}: {path} should be wrapped in brackets {{ ... }}")
    return Value(path, tuple(_tokens(path, inner[1].removeprefix("$"))), "".join(values))


def _tokens(shown: str, path: str) -> list[re.Match[str]]:
    tokens: list[re.Match[str]] = []
    position = 0
    while position < len(path):
        token = _TOKEN.match(path, position)
        if token is None:
            raise RefusedError(
                f"{ANNOTATION}: parsing {json.dumps(shown)}: cannot read {path[position:]!r}; a path is made of "
                """.field, ["field"], [0], [*] and [?(@.field=="value")]"""
            )
        tokens.append(token)
        position = token.end()
    return tokens


def _is_before(obj: Json, observed: Any) -> bool:
    """Whether an observed generation is older than the object's."""
    generation = at(obj, "metadata", "generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def _select(obj: Json, path: tuple[re.Match[str], ...]) -> list[Any]:
    found: list[Any] = [obj]
    for token in path:
        found = [below for value in found for below in _step(value, token)]
    return found


def _step(value: Any, token: re.Match[str]) -> list[Any]:
    part = token.groupdict()
    key = next((part[name] for name in ("key", "single", "double") if part[name] is not None), None)
    if key is not None:
        return [value[key]] if isinstance(value, dict) and key in value else []
    if part["all"]:
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if not isinstance(value, list):
        return []
    if part["index"] is not None:
        index = int(part["index"])
        return [value[index]] if -len(value) <= index < len(value) else []
    literal = part["literal"]
    expected = literal[1:-1] if literal[0] in "\"'" else json.loads(literal)
    return [item for item in value if same(at(item, *part["field"].split(".")), expected)]


def _alike(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)
