"""Tables of benchmarks in pages of docs/."""

from pathlib import Path


def write_tables(page: Path, benchmark: str, text: str) -> None:
    """Puts a benchmark's tables between its two marks in a page, in place of those that are there."""
    begin, end = (f"<!-- benchmarks.{benchmark}: {mark} -->\n" for mark in ("begin", "end"))
    said = page.read_text()
    before, _, rest = said.partition(begin)
    page.write_text(f"{before}{begin}\n{text.rstrip()}\n\n{end}{rest.partition(end)[2]}")
