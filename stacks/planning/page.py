"""Reports as one page of HTML that needs nothing else."""

from collections.abc import Iterable, Iterator
from html import escape

from .drawing import svg
from .report import Report, Table

_STYLE = (
    "body{font:14px sans-serif;margin:2em;color:#222;background:#fff}table{border-collapse:collapse;margin:0 0 1.5em}"
    "caption{text-align:left;font-weight:bold;padding:.3em 0}th,td{border-bottom:1px solid #ccc;padding:.25em .8em;"
    "text-align:right}th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}"
)


def html(reports: Iterable[Report]) -> str:
    """The page."""
    shown = list(reports)
    title = escape(", ".join(report.title for report in shown))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"</head><body>\n{''.join(part for report in shown for part in _report(report))}</body></html>\n"
    )


def _report(report: Report) -> Iterator[str]:
    yield f"<h1>{escape(report.title)}</h1>\n"
    yield f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in report.sentences)}</ul>\n"
    if report.text:
        yield f"<pre>{escape(report.text)}</pre>\n"
    yield from (_table(table) for table in report.tables)
    if report.plan:
        yield svg(report.plan)


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in table.rows)
    return f"<table><caption>{escape(table.title)}</caption><tr>{header}</tr>\n{rows}</table>\n"
