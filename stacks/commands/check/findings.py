"""The findings of stack files, and their formats.

For people: like a compiler's, with the source line and a mark below it.
"""

import functools
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from core.messages import may_be_secret, secret_key
from core.problems import UNSHOWN, Finding, StackFileError, annotation, place
from core.secrets import SECRET_VALUE
from core.stack_file import UNREADABLE, read, stack_file, stack_name
from stacks.checks.advice import advice, too_long
from stacks.launcher_files.configuration import with_launcher_files
from stacks.load import settings_of


@dataclass(frozen=True)
class Checked:
    file: str
    """The name that the user gave."""
    findings: tuple[Finding, ...] = ()
    """In the order of their lines."""
    lines: tuple[str, ...] = ()
    """The file's text."""
    advice: tuple[Finding, ...] = ()
    """What a file without findings should change soon."""

    @property
    def unreadable(self) -> bool:
        """Whether the file cannot be read, so that there is only this finding."""
        return any(finding.rule == UNREADABLE for finding in self.findings)


def check(file: Path) -> Checked:
    text = ""
    try:
        text = read(file)
        parsed = with_launcher_files(stack_file(file, text))
        settings = settings_of(parsed)
    except StackFileError as error:
        return Checked(str(file), error.findings, tuple(text.splitlines()))
    given = [*too_long(parsed, settings), *parsed.advice, *advice(settings, stack_name(file), date.today())]
    # A setting of several groups is advised against once.
    found = parsed.error({(each.path, each.message): each for each in given}.values())
    return Checked(str(file), lines=tuple(text.splitlines()), advice=found.findings)


_MOST = 1_000
"""Findings that are shown to people; other formats have all."""

_WIDEST = 110
"""Characters of a source line that are shown."""

_HIDDEN = "***"

_KEY = re.compile(
    r"(?<![\w.-])([\w.-]{1,100})[\"']?\s*[:=]\s*(?=\S)(?!(?:advisory|mandatory|remediate|disabled|true|false)\b)"
)


_Line = tuple[tuple[str, str], ...]
"""Texts of one line, each with its style."""


def show(checked: Iterable[Checked]) -> None:
    """Prints all findings and advice, and the count of findings; in colours on a terminal."""
    files = list(checked)
    found = [(finding, each) for each in files for finding in (*each.findings, *each.advice)]
    lines = [*itertools.chain.from_iterable(_lines(*each) for each in found[:_MOST])]
    if len(found) > _MOST:
        lines.append(((f"... and {len(found) - _MOST} more: correct these first", "bold"),))
    lines.append(_count(files))
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE")):
        # Rich would show no colours, and takes as long to import as the file to check.
        for line in lines:
            print("".join(text for text, _ in line))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True, emoji=False, markup=False)
    for line in lines:
        console.print(Text.assemble(*line))


def _lines(finding: Finding, checked: Checked) -> Iterator[_Line]:
    file = finding.file or checked.file
    where = f"{':'.join(str(each) for each in (file, finding.line, finding.column) if each)}: "
    yield (
        (where, "bold"),
        (f"{place(finding.path)}: " if finding.path else "", "cyan"),
        ("advice: " if finding in checked.advice else "", "yellow"),
        (finding.message, ""),
        (f" [{finding.rule}]", "dim"),
        (f" (part of {checked.file})" if finding.file else "", "dim"),
    )
    lines = _lines_of(finding.file) if finding.file else checked.lines
    if finding.line and finding.column and finding.line <= len(lines):
        line = lines[finding.line - 1]
        if may_be_secret(finding.path, finding.rule):
            line = f"{line[: finding.column - 1]}{_HIDDEN}"
        yield from _source(_safe(line), finding.line, finding.column, finding.end_column)


def _lines_of(file: str) -> tuple[str, ...]:
    try:
        return tuple(read(Path(file)).splitlines())
    except StackFileError:
        return ()


def _source(line: str, number: int, column: int, end: int | None) -> Iterator[_Line]:
    """The line, and below it a mark under the finding's place."""
    start = 0 if column <= _WIDEST - 20 else column - _WIDEST // 2
    shown = line[start : start + _WIDEST]
    if not shown.strip() or column > len(line) + 1:
        return
    marks = min(max(end or 0, column + 1), start + len(shown) + 1) - column
    yield (f"{number:>6} | ", "blue"), (shown, "")
    yield (f"{'':>6} | ", "blue"), (" " * (column - 1 - start) + "^" * max(1, marks), "red")


@functools.lru_cache(maxsize=8)
def _safe(line: str) -> str:
    """The line up to the first key whose value may be secret, in characters that a terminal shows."""
    secret = next((key for key in _KEY.finditer(line) if secret_key(key[1])), None)
    if secret:
        line = f"{line[: secret.end()]}{_HIDDEN}"
    elif found := SECRET_VALUE.search(line):
        line = f"{line[: found.start()]}{_HIDDEN}"
    return line if line.isprintable() else "".join(each if each.isprintable() else UNSHOWN for each in line)


def _count(files: list[Checked]) -> _Line:
    findings = sum(len(each.findings) for each in files)
    summary = (
        f"{_number(findings, 'finding')} in {_number(len(files), 'file')}"
        if findings
        else _number(len(files), "file") + ": no findings"
    )
    return ((summary, "bold red" if findings else "bold green"),)


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def as_json(checked: Iterable[Checked]) -> str:
    """A list with an object for each finding; keys stay the same, null for unknown values."""
    return json.dumps(findings_as_objects(checked), indent=2)


def findings_as_objects(checked: Iterable[Checked]) -> list[dict[str, Any]]:
    """The objects of `as_json`."""
    return [_object(each.file, finding) for each in checked for finding in each.findings]


def _object(file: str, finding: Finding) -> dict[str, Any]:
    return {
        "file": finding.file or file,
        "line": finding.line,
        "column": finding.column,
        "endColumn": finding.end_column,
        "path": list(finding.path),
        "place": place(finding.path),
        "value": finding.value,
        "message": finding.message,
        "rule": finding.rule,
    }


def as_annotations(checked: Iterable[Checked]) -> Iterator[str]:
    """An annotation for each finding, and a warning for each piece of advice: one for what several stack files have
    from the same base."""
    yield from dict.fromkeys(_annotations(checked))


def _annotations(checked: Iterable[Checked]) -> Iterator[str]:
    for each in checked:
        for finding in (*each.findings, *each.advice):
            places = {
                "file": finding.file or each.file,
                "line": finding.line,
                "col": finding.column,
                "endColumn": finding.end_column,
                "title": finding.rule,
            }
            yield annotation("warning" if finding in each.advice else "error", places, str(finding))
