"""Tables of benchmarks in pages of docs/."""

from pathlib import Path


def write_tables(page: Path, benchmark: str, text: str) -> None:
    """Replaces the tables of a benchmark between its two marks in a page."""
    begin, end = (f"<!-- benchmarks.{benchmark}: {mark} -->\n" for mark in ("begin", "end"))
    content = page.read_text()
    before, _, rest = content.partition(begin)
    page.write_text(f"{before}{begin}\n{text.rstrip()}\n\n{end}{rest.partition(end)[2]}")
