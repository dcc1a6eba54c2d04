"""The findings of one stack file."""

from dataclasses import dataclass
from pathlib import Path

from core.findings import Finding, StackFileError
from core.stack_file import UNREADABLE, read, stack_file

from ..load import settings_of


@dataclass(frozen=True)
class Checked:
    """A stack file and its findings."""

    file: str
    """The name that the user gave."""
    findings: tuple[Finding, ...] = ()
    """In the order of their lines."""
    lines: tuple[str, ...] = ()
    """The file's text."""

    @property
    def unreadable(self) -> bool:
        """Whether the file cannot be read, so that there is only this finding."""
        return any(finding.rule == UNREADABLE for finding in self.findings)


def check(file: Path) -> Checked:
    """Reads a stack file and returns all its findings."""
    text = ""
    try:
        text = read(file)
        settings_of(stack_file(file, text))
    except StackFileError as error:
        return Checked(str(file), error.findings, tuple(text.splitlines()))
    return Checked(str(file))
