"""Parts of CEL expressions for the API server (kubernetes.io, Common Expression Language in Kubernetes)."""

import json
import re
from collections.abc import Iterable

from core.problems import Path

ALWAYS = "true"
"""An expression that is always true."""


def text(value: str) -> str:
    """A string literal. CEL has the escapes of JSON."""
    return json.dumps(value, ensure_ascii=False)


def listed(values: Iterable[str]) -> str:
    """A list of string literals."""
    return f"[{', '.join(map(text, values))}]"


def under(of: str, path: Path) -> str:
    """The optional value at a path below."""
    return "".join([of, *(f".?{step}" for step in path)])


def before(expression: str) -> str:
    """The same expression for the object before an update."""
    return re.sub(r"\bvariables\.(\w+)", r"variables.\1Before", re.sub(r"\bobject\b", "oldObject", expression))


def quantity(of: str) -> str:
    """A quantity of Kubernetes. Custom resources may have it as a number."""
    return f"quantity(string({of}))"
