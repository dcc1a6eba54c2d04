"""Shows the status of a stack on a terminal or in a pipe, once or again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from ..planning.report import Table
from .report import sections, summary
from .tenants import StackStatus

_UNLIMITED = 10_000
"""Width in a pipe: nothing is wrapped, so that each row and each reason is one line."""

Draw = Callable[[StackStatus, str], None]
"""Shows a report, and below it why a later one could not be made, or an empty text."""


def show(name: str, status: StackStatus) -> None:
    """Prints the report; in colours on a terminal."""
    console = _console()
    for each in _parts(name, status, console):
        console.print(each)


@contextmanager
def redrawing(name: str) -> Iterator[Draw]:
    """Shows each report in place of the last one; in a pipe, after it."""
    console = _console()
    if not console.is_terminal:
        yield lambda status, error: console.print(_whole(name, status, error, console))
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda status, error: live.update(_whole(name, status, error, console), refresh=True)


def _whole(name: str, status: StackStatus, error: str, console: Console) -> Group:
    return Group(*_parts(name, status, console), *([Text(f"\n{error}", "bold red")] if error else []))


def _console() -> Console:
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def _parts(name: str, status: StackStatus, console: Console) -> Iterator[RenderableType]:
    yield Text(summary(name, status), "bold green" if status.ok else "bold red")
    for section in sections(status):
        yield Text(f"\n{section.title}", "bold")
        for number, table in enumerate(section.tables):
            yield from ([Text()] if number else [])
            yield _table(table, console)
        yield from (Text(f"- {each}") for each in section.reasons)


def _table(table: Table, console: Console) -> RenderableType:
    """The table, or where it is too wide a line for each cell."""
    made = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, column in enumerate(table.columns):
        made.add_column(column, no_wrap=True, style="cyan" if index == 0 else "")
    for row in table.rows:
        made.add_row(*(Text(cell) for cell in row))
    options = console.options.update(max_width=_UNLIMITED)
    if Measurement.get(console, options, made).maximum <= console.width:
        return made
    return Group(*(line for row in table.rows for line in _record(table.columns, row)))


def _record(columns: tuple[str, ...], row: tuple[str, ...]) -> Iterator[Text]:
    yield Text.assemble(f"{columns[0]} ", (row[0], "cyan"))
    yield from (Text(f"  {column}: {cell}") for column, cell in zip(columns[1:], row[1:], strict=True))
