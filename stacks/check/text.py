"""Findings for people: as a compiler shows them, with the line and what is meant in it."""

import re
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from ..findings import Finding, place
from ..messages import may_be_secret, secret_key
from .checked import Checked

_WIDEST = 110
"""Characters of a source line that are shown."""

_KEY = re.compile(r"([\w.-]+)[\"']?\s*[:=]\s*(?=\S)")


def show(checked: Iterable[Checked]) -> None:
    """Print all findings and their count; in colours where it is a terminal."""
    console = Console(highlight=False, soft_wrap=True, emoji=False, markup=False)
    files = list(checked)
    for each in files:
        for finding in each.findings:
            for line in _lines(finding, each):
                console.print(line)
    console.print(_count(files))


def _lines(finding: Finding, checked: Checked) -> Iterator[Text]:
    where = f"{checked.file}:{finding.line}:{finding.column}: " if finding.line else f"{checked.file}: "
    yield Text.assemble(
        (where, "bold"),
        (f"{place(finding.path)}: " if finding.path else "", "cyan"),
        finding.message,
        (f" [{finding.rule}]", "dim"),
    )
    if finding.line and finding.column and finding.line <= len(checked.lines):
        yield from _source(finding, finding.line, finding.column, checked.lines[finding.line - 1])


def _source(finding: Finding, number: int, column: int, line: str) -> Iterator[Text]:
    """The line, and below it a mark under what is meant."""
    shown, column = _around(_printable(line), column)
    if may_be_secret(finding.path, finding.rule):
        shown, end = f"{shown[: column - 1]}***", column + 3
    else:
        shown = _without_secrets(shown)
        end = column + (finding.end_column - finding.column) if finding.end_column and finding.column else column + 1
    if not shown.strip():
        return
    gutter = f"{number:>6} | "
    yield Text.assemble((gutter, "blue"), shown)
    marks = "^" * max(1, min(end, len(shown) + 1) - column)
    yield Text.assemble((" " * 6 + " | ", "blue"), (" " * (column - 1) + marks, "red"))


def _without_secrets(line: str) -> str:
    """The line as far as the first key whose value may be secret."""
    secret = next((key for key in _KEY.finditer(line) if secret_key(key[1])), None)
    return f"{line[: secret.end()]}***" if secret else line


def _around(line: str, column: int) -> tuple[str, int]:
    """What fits of a long line, with the column in it."""
    start = 0 if column <= _WIDEST - 20 else column - _WIDEST // 2
    return line[start : start + _WIDEST], column - start


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)


def _count(files: list[Checked]) -> Text:
    findings = sum(len(each.findings) for each in files)
    said = (
        f"{_number(findings, 'finding')} in {_number(len(files), 'file')}"
        if findings
        else _number(len(files), "file") + ": no findings"
    )
    return Text(said, "bold red" if findings else "bold green")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
