"""What is wrong with a stack file: each fault with its place, in the words that people read."""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.problems import Path

_SHOWN = 60
"""Characters of a value or a key that are shown."""

UNKNOWN_FIELD = "unknown-field"
"""Rule of a finding on a key: it is the key that is at the place, not what stands behind it."""

UNSHOWN = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that a terminal would not show, or would obey."""

_PLAIN_KEY = re.compile(r"[\w./:-]{1,60}")


@dataclass(frozen=True)
class Finding:
    """A fault in a stack file."""

    path: Path
    """Where it is, from the stack file's key: `("ray-platform:tenants", 0, "name")`; empty for the file as a whole."""
    value: Any
    """What stands there; None where nothing does, or a secret."""
    message: str
    """What is wrong, what is allowed, what to change: one line, without the path."""
    rule: str
    """The rule's name, which stays the same: `unknown-field`."""
    line: int | None = None
    """Line in the file, from 1; None where the file is not known, or all of it is meant."""
    column: int | None = None
    """Column of the line, from 1."""
    end_column: int | None = None
    """Column after the value, where it ends on the same line."""

    def __str__(self) -> str:
        return f"{place(self.path)}: {self.message}" if self.path else self.message

    def in_file(self, file: str) -> str:
        """The finding as a compiler says it: `Pulumi.dev.yaml:14:11: ray-platform:tenants[0].name: ...`."""
        return f"{file}:{self.line}:{self.column}: {self}" if self.line else f"{file}: {self}"


class StackFileError(Exception):
    """A stack file cannot be used. The text has a line for each finding."""

    def __init__(self, findings: Iterable[Finding], file: str | None = None) -> None:
        """Keep the findings in the order of their lines; `file` is the name that goes before each."""
        self.findings = tuple(sorted(findings, key=lambda finding: (finding.line or sys.maxsize, finding.column or 0)))
        super().__init__("\n".join(each.in_file(file) if file else str(each) for each in self.findings))


def shown(value: Any) -> str:
    """A value as a message shows it: what YAML would say, in one line, cut where it is long."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def in_one_line(text: str) -> str:
    """A text without line breaks, and with no character that a terminal would not show."""
    return "".join(each if each.isprintable() else UNSHOWN for each in " ".join(text.split()))


def place(path: Path) -> str:
    """A path as people write it: `ray-platform:tenants[0].name`."""
    return "".join(_step(step) for step in path).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{shown(step)}]"


def annotation(level: str, places: Mapping[str, str | int | None], text: str) -> str:
    """A workflow command (docs.github.com, Workflow commands: setting an error message).

    `level`: `error`, `warning` or `notice`. `places`: the command's properties, such as `file` and `line`.
    """
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in places.items() if value is not None)
    return f"::{level} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
