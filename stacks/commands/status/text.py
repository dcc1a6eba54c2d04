"""Shows the status of a stack on a terminal or in a pipe, once or again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from core.problems import in_one_line
from stacks.commands.plan.report import Table
from stacks.commands.status.report import sections, summary
from stacks.commands.status.tenants import StackStatus

_BETWEEN = "  "
"""Between two columns."""

_UNLIMITED = 10_000
"""Width in a pipe: nothing is wrapped, so that each row and each reason is one line."""

Draw = Callable[[StackStatus, str], None]
"""Shows a report, and below it why a later one could not be made, or an empty text."""


def show(name: str, status: StackStatus) -> None:
    """Prints the report; in colours on a terminal."""
    console = open_console()
    for each in _parts(name, status, console):
        console.print(each)


@contextmanager
def redrawing(name: str) -> Iterator[Draw]:
    """Shows each report in place of the last one; in a pipe, after it."""
    console = open_console()
    if not console.is_terminal:
        yield lambda status, error: console.print(_whole(name, status, error, console))
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda status, error: live.update(_whole(name, status, error, console), refresh=True)


def _whole(name: str, status: StackStatus, error: str, console: Console) -> Group:
    return Group(*_parts(name, status, console), *([Text(f"\n{error}", "bold red")] if error else []))


def open_console() -> Console:
    """The terminal or the pipe that the command writes to."""
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def _parts(name: str, status: StackStatus, console: Console) -> Iterator[Text]:
    yield Text(summary(name, status), "bold green" if status.ok else "bold red")
    for section in sections(status):
        yield Text(f"\n{section.title}", "bold")
        for number, table in enumerate(section.tables):
            yield from ([Text()] if number else [])
            yield from table_lines(table, console.width)
        yield from (Text(f"- {each}") for each in section.reasons)


def table_lines(table: Table, width: int) -> Iterator[Text]:
    """A line for each row, or where these are too wide for each cell. rich's own tables take four seconds for a
    thousand tenants, because it measures each cell several times."""
    rows = [tuple(map(in_one_line, row)) for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip(table.columns, *rows, strict=True)]
    if sum(widths) + len(_BETWEEN) * (len(widths) - 1) > width:
        yield from (line for row in rows for line in _record(table.columns, row))
        return
    for number, row in enumerate([table.columns, *rows]):
        first, *others = (cell + " " * (room - cell_len(cell)) for cell, room in zip(row, widths, strict=True))
        rest = "".join(f"{_BETWEEN}{cell}" for cell in others).rstrip()
        yield Text.assemble((first, "cyan" if number else "bold"), (rest, "" if number else "bold"))


def _record(columns: tuple[str, ...], row: tuple[str, ...]) -> Iterator[Text]:
    yield Text.assemble(f"{columns[0]} ", (row[0], "cyan"))
    yield from (Text(f"  {column}: {cell}") for column, cell in zip(columns[1:], row[1:], strict=True))
