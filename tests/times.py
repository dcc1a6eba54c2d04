"""`python -m tests.times`: writes docs/test-times.md from the reports of the last run of each tier."""

import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from local import paths
from tests.tiers import CORES, TIERS, TIMES

PAGE = paths.ROOT / "docs" / "test-times.md"

SLOWEST_FILES, SLOWEST_TESTS = 30, 60


@dataclass(frozen=True)
class Timed:
    """A test and its seconds, including those of its fixtures. `file` is the module's name."""

    file: str
    name: str
    seconds: float


@dataclass(frozen=True)
class Run:
    """The last run of a tier: when it began (ISO 8601), its duration in seconds, and its tests."""

    tier: str
    at: str
    seconds: float
    tests: tuple[Timed, ...]


def runs(folder: Path = TIMES) -> Iterator[Run]:
    """The runs whose JUnit XML is in a folder, in the order of the tiers."""
    for tier in TIERS:
        file = folder / f"{tier}.xml"
        if file.is_file():
            yield read(tier, file)


def read(tier: str, file: Path) -> Run:
    """A run from the XML that pytest has written."""
    [suite] = ElementTree.parse(file).getroot().iter("testsuite")  # noqa: S314 -- pytest has written it
    tests = [
        Timed(case.get("classname", "").removeprefix("tests."), case.get("name", ""), float(case.get("time", "0")))
        for case in suite.iter("testcase")
    ]
    return Run(tier, suite.get("timestamp", ""), float(suite.get("time", "0")), tuple(tests))


def page(found: Sequence[Run]) -> str:
    """The page: minutes of each tier, the slowest files and the slowest tests."""
    lines = [
        "# How long the tests take",
        "",
        f"Written by `make test-times` after `make test`, on {CORES} cores ({platform.machine()}), "
        f"{time.strftime('%Y-%m-%d')}. Seconds of a test include its fixtures, while tests of other files run "
        "beside it. What the tiers are: [testing.md](testing.md).",
        "",
        "| tier | tests | minutes | begun |",
        "| --- | --- | --- | --- |",
    ]
    lines += [f"| {run.tier} | {len(run.tests)} | {run.seconds / 60:.1f} | {run.at[:16]} |" for run in found]
    tests = [test for run in found for test in run.tests]
    by_file: dict[str, list[Timed]] = {}
    for test in tests:
        by_file.setdefault(test.file, []).append(test)
    files = sorted(((sum(test.seconds for test in of), len(of), name) for name, of in by_file.items()), reverse=True)
    lines += ["", "## The slowest files", "", "| seconds | tests | file |", "| --- | --- | --- |"]
    lines += [f"| {seconds:.0f} | {count} | `{name}` |" for seconds, count, name in files[:SLOWEST_FILES]]
    lines += ["", "## The slowest tests", "", "| seconds | test |", "| --- | --- |"]
    slowest = sorted(tests, key=lambda test: test.seconds, reverse=True)[:SLOWEST_TESTS]
    lines += [f"| {test.seconds:.1f} | `{test.file}` {test.name.replace('|', chr(92) + '|')} |" for test in slowest]
    return "\n".join([*lines, ""])


def main() -> int:
    """Writes the page."""
    found = list(runs())
    if not found:
        print("error: there is no report of a test run: run `make test`")
        return 1
    PAGE.write_text(page(found))
    print(f"{PAGE.relative_to(paths.ROOT)}: {', '.join(run.tier for run in found)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
