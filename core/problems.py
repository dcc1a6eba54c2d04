"""Problems of configured values, and findings in a stack file: all are found at once, each with its place."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

from core.yaml_reader.scalars import Rewritten

Path: TypeAlias = tuple[str | int, ...]
"""Path in a mapping: keys as written, and indexes of lists."""


@dataclass(frozen=True)
class Problem:
    """An error in a configured value."""

    path: Path
    """Path inside the checked mapping."""
    value: Any
    """The value; None if it is missing."""
    message: str
    """What is wrong, what is allowed, what to change: one line, without the path."""
    rule: str
    """The stable name of the rule: `replica-bounds`."""
    rendered: str = ""
    """The beginning of the message that names a field of the rendered object, if the value comes from a setting of
    another name."""
    release: str | None = None
    """The release of KubeRay with which the field came, if the value is refused for that alone: `1.7`."""

    def below(self, path: Path) -> Self:
        """This problem, relative to a mapping with the checked one at `path`."""
        return replace(self, path=(*path, *self.path))


class Problems(ValueError):  # noqa: N818 -- it contains several instances of Problem
    """Several problems at once; their paths are relative to the model that raises it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keeps the problems in order."""
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{dotted(problem.path)}: {problem.message}" for problem in self.problems))


def raise_problems(found: Iterable[Problem]) -> None:
    """Raises Problems if there are any."""
    if problems := tuple(found):
        raise Problems(problems)


def repeats(named: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, str, Path]]:
    """Each place whose name another one has before it, with the name, and the first place with it."""
    first: dict[str, Path] = {}
    for path, name in named:
        if name in first:
            yield path, name, first[name]
        first.setdefault(name, path)


def dotted(path: Path) -> str:
    """A path for messages: `workers[0].pool`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


_SHOWN = 60
"""Maximum characters of a value or key in a message."""

UNKNOWN_FIELD = "unknown-field"
"""Rule of a finding on a key: its place is that of the key, not that of the value."""

UNSHOWN = "\N{REPLACEMENT CHARACTER}"
"""Replaces characters that a terminal would not print, or would interpret."""

_PLAIN_KEY = re.compile(r"[\w./:-]{1,60}")


@dataclass(frozen=True)
class Finding:
    """An error in a stack file."""

    path: Path
    """Path from the key in the stack file: `("ray-platform:tenants", 0, "name")`; empty for the whole file."""
    value: Any
    """The value; None if it is missing or a secret."""
    message: str
    """What is wrong, what is allowed, what to change: one line, without the path."""
    rule: str
    """The stable name of the rule: `unknown-field`."""
    line: int | None = None
    """Line in the file, from 1; None if the file is not known, or for the whole file."""
    column: int | None = None
    """Column in the line, from 1; None if it is not known."""
    end_column: int | None = None
    """Column after the value, if it ends on the same line."""
    file: str | None = None
    """Name of the file with the line, if it is a base or a launcher file of the stack file; None for the stack file
    itself."""
    rendered: str = ""
    """As of a problem."""

    def __str__(self) -> str:
        return f"{place(self.path)}: {self.message}" if self.path else self.message

    def in_file(self, file: str) -> str:
        """The finding in the format of compilers: `Pulumi.dev.yaml:14:11: ray-platform:tenants[0].name: ...`.

        `file`: the stack file's name.
        """
        name = self.file or file
        return f"{':'.join(str(each) for each in (name, self.line, self.column) if each)}: {self}"


class StackFileError(Exception):
    """A stack file is not valid. The text has one line for each finding."""

    def __init__(self, findings: Iterable[Finding], file: str | None = None) -> None:
        """Sorts the findings by line, those in bases last; `file` is the stack file's name, before each."""
        self.findings = tuple(
            sorted(findings, key=lambda each: (each.file or "", each.line or sys.maxsize, each.column or 0))
        )
        super().__init__(
            "\n".join(each.in_file(file or "") if file or each.file else str(each) for each in self.findings)
        )


def quoted(value: Any) -> str:
    """What to write instead of a number or a boolean where text is expected."""
    return f'write it in quotes, "{shown(value)}"'


def shown(value: Any) -> str:
    """A value for a message: as in YAML, in one line, truncated if long."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, Rewritten):
        text = value.written
    else:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def in_one_line(text: str) -> str:
    """A text without line breaks and unprintable characters."""
    return "".join(each if each.isprintable() else UNSHOWN for each in " ".join(text.split()))


def few(names: Sequence[str], most: int) -> str:
    """The first names, and the number of the others: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def place(path: Path) -> str:
    """A path for messages: `ray-platform:tenants[0].name`."""
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
