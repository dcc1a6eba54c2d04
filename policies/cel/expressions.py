"""Parts of CEL expressions, as the API server takes them (kubernetes.io, Common Expression Language in Kubernetes)."""

import json
import re
from collections.abc import Iterable

from core.problems import Path

ALWAYS = "true"
"""An expression that nothing breaks."""


def text(value: str) -> str:
    """A literal. JSON's escapes are CEL's, too."""
    return json.dumps(value, ensure_ascii=False)


def listed(values: Iterable[str]) -> str:
    """A list of literals."""
    return f"[{', '.join(map(text, values))}]"


def under(of: str, path: Path) -> str:
    """The value below, which may be missing."""
    return "".join([of, *(f".?{step}" for step in path)])


def before(expression: str) -> str:
    """The same expression about the object as it was before an update."""
    return re.sub(r"\bvariables\.(\w+)", r"variables.\1Before", re.sub(r"\bobject\b", "oldObject", expression))


def quantity(of: str) -> str:
    """A quantity of Kubernetes'; custom resources may have it as a number."""
    return f"quantity(string({of}))"
