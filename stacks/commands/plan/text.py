"""Reports for people: on a terminal, and in Markdown."""

from collections.abc import Iterable, Iterator

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table as RichTable
from rich.text import Text

from stacks.commands.plan.report import Report, Table

_NARROWEST = 160
"""Width of a table if the terminal is narrower or there is none: no figure is truncated."""


_BOLD, _FIRST = Style(bold=True), Style(color="cyan")
"""Styles of titles and headers, and of the first column."""


def show(reports: Iterable[Report]) -> None:
    """Prints reports; in colours on a terminal."""
    console = Console(highlight=False, emoji=False, markup=False)
    console.width = max(console.width, _NARROWEST)
    for report in reports:
        console.print(Text(report.title, "bold"))
        for table in report.tables:
            fitting = _laid_out(table, console.width)
            console.print(fitting or _rich(table), soft_wrap=fitting is not None)
        for sentence in report.sentences:
            console.print(f"- {sentence}", soft_wrap=True)
        if report.text:
            console.print(report.text, soft_wrap=True)


def _laid_out(table: Table, width: int) -> Segments | None:
    """The table as rich draws it, if it fits into the width; None if rich has to wrap it.

    rich takes most of a second for a thousand rows, because it inspects each cell several times.
    """
    rows = [table.columns, *table.rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    whole = sum(widths) + 3 * len(widths) + 1
    if max(whole, cell_len(table.title)) > min(whole, width) or not all(
        cell.isprintable() for row in rows for cell in row
    ):
        return None
    blank = f"{' ' * whole}\n"
    parts = [Segment(table.title.ljust(whole), _BOLD), Segment(f"\n{blank}")]
    for number, row in enumerate(rows):
        room = [each - cell_len(cell) for each, cell in zip(widths, row, strict=True)]
        others = "".join(f"   {' ' * space}{cell}" for space, cell in zip(room[1:], row[1:], strict=True))
        head = number == 0
        parts += [
            Segment(f"  {row[0]}{' ' * room[0]}", _BOLD if head else _FIRST),
            Segment(f"{others}  \n", _BOLD if head else None),
        ]
        if head:
            parts.append(Segment(f" {box.SIMPLE_HEAD.head_row_horizontal * (whole - 2)} \n"))
    return Segments([*parts, Segment(blank)])


def _rich(table: Table) -> RichTable:
    made = RichTable(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for index, column in enumerate(table.columns):
        made.add_column(column, justify="left" if index == 0 else "right", style="cyan" if index == 0 else "")
    for row in table.rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def markdown(reports: Iterable[Report]) -> str:
    return "\n".join(line for report in reports for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escaped(report.title)}\n"
    for table in report.tables:
        yield f"## {table.title}\n"
        yield from in_markdown(table)
        yield ""
    yield from (f"- {escaped(sentence)}" for sentence in report.sentences)
    if report.text:
        yield f"\n```yaml\n{report.text}\n```"
    yield ""


def in_markdown(table: Table) -> Iterator[str]:
    """The lines of a table, without its title."""
    yield _row(table.columns)
    yield _row(["---", *["---:"] * (len(table.columns) - 1)])
    yield from (_row([escaped(cell) for cell in row]) for row in table.rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """A text in which Markdown finds no marks."""
    return "".join(f"\\{each}" if each in "\\|*_`<>[]#" else each for each in text)
