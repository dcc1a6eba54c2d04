"""What is wrong with a stack file: each fault with its place, in the words that people read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from components.problems import Path, dotted

SHOWN = 60
"""Characters of a value that are shown."""


@dataclass(frozen=True)
class Finding:
    """A fault in a stack file."""

    path: Path
    """Where it is, from the stack file's key: `("ray-platform:tenants", 0, "name")`; empty for the file as a whole."""
    value: Any
    """What stands there; None where nothing does."""
    message: str
    """What is wrong, what is allowed, what to change: one line, without the path."""
    rule: str
    """The rule's name, which stays the same: `unknown-key`."""
    line: int | None = None
    """Line in the file, from 1; None where the file is not known."""
    column: int | None = None
    """Column of the line, from 1."""
    end_column: int | None = None
    """Column after the value, where it ends on the same line."""

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.message}" if self.path else self.message

    def in_file(self, file: str) -> str:
        """The finding as a compiler says it: `Pulumi.dev.yaml:14:11: ray-platform:tenants[0].name: ...`."""
        place = "" if self.line is None else f":{self.line}:{self.column}"
        return f"{file}{place}: {self}"


class StackFileError(Exception):
    """A stack file cannot be used. The text has a line for each finding."""

    def __init__(self, findings: Iterable[Finding], file: str | None = None) -> None:
        """Keep the findings in the order of their lines; `file` is the name that goes before each."""
        self.findings = tuple(sorted(findings, key=lambda finding: (finding.line or 0, finding.column or 0)))
        self.file = file
        super().__init__("\n".join(each.in_file(file) if file else str(each) for each in self.findings))


def shown(value: Any) -> str:
    """A value as it is shown in a message: its first characters, in one line."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
