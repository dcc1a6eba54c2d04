"""Reports for people: on a terminal, and in Markdown."""

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from .report import Report, Table

_NARROWEST = 160
"""Columns that a table may take where the terminal has fewer or there is none: no figure is cut."""


def show(reports: Iterable[Report]) -> None:
    """Print reports; in colours where it is a terminal."""
    console = Console(highlight=False, emoji=False, markup=False)
    console.width = max(console.width, _NARROWEST)
    for report in reports:
        console.print(Text(report.title, "bold"))
        for table in report.tables:
            console.print(_rich(table))
        for sentence in report.sentences:
            console.print(f"- {sentence}", soft_wrap=True)
        if report.text:
            console.print(report.text, soft_wrap=True)


def _rich(table: Table) -> RichTable:
    made = RichTable(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for index, column in enumerate(table.columns):
        made.add_column(column, justify="left" if index == 0 else "right", style="cyan" if index == 0 else "")
    for row in table.rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def markdown(reports: Iterable[Report]) -> str:
    """The reports as GitHub's Markdown."""
    return "\n".join(line for report in reports for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"# {_escaped(report.title)}\n"
    for table in report.tables:
        yield f"## {table.title}\n"
        yield _row(table.columns)
        yield _row(["---", *["---:"] * (len(table.columns) - 1)])
        yield from (_row([_escaped(cell) for cell in row]) for row in table.rows)
        yield ""
    yield from (f"- {_escaped(sentence)}" for sentence in report.sentences)
    if report.text:
        yield f"\n```yaml\n{report.text}\n```"
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\|*_`<>[]#" else each for each in text)
