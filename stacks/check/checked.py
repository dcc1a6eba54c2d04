"""What a check of one stack file found."""

from dataclasses import dataclass
from pathlib import Path

from core.findings import Finding, StackFileError
from core.stack_file import UNREADABLE, read, stack_file

from ..load import settings_of


@dataclass(frozen=True)
class Checked:
    """A stack file and what is wrong with it."""

    file: str
    """What people called it."""
    findings: tuple[Finding, ...] = ()
    """In the order of their lines."""
    lines: tuple[str, ...] = ()
    """The file's text."""

    @property
    def unreadable(self) -> bool:
        """Nothing can be said about the file, because it cannot be opened."""
        return any(finding.rule == UNREADABLE for finding in self.findings)


def check(file: Path) -> Checked:
    """Read a stack file and say all that is wrong with it."""
    text = ""
    try:
        text = read(file)
        settings_of(stack_file(file, text))
    except StackFileError as error:
        return Checked(str(file), error.findings, tuple(text.splitlines()))
    return Checked(str(file))
