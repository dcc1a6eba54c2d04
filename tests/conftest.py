"""The tiers of tests: each test is in one, and the summary says how many of each there were."""

import os

import pytest

from local.proxies import bypassing

TIERS = ("unit", "engine", "pods")

SLOWEST = 40
"""Of the engine tests, so many are shown with their times."""


def pytest_configure() -> None:
    """Lets tests reach what they start where the machine is behind a proxy."""
    os.environ.update(bypassing(os.environ))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a test without a tier: it would be left out when a tier is run by its name."""
    homeless = [item.nodeid for item in items if len([tier for tier in TIERS if item.get_closest_marker(tier)]) != 1]
    if homeless:
        raise pytest.UsageError(f"tests without one marker of {', '.join(TIERS)}: {', '.join(homeless)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The times of the slowest engine tests, and a line for each tier with its counts."""
    engine = [report for report in terminalreporter.stats.get("passed", []) if _in_tier(report, "engine")]
    if engine:
        terminalreporter.section("engine tests, seconds")
    for report in sorted(engine, key=lambda report: -report.duration)[:SLOWEST]:
        terminalreporter.write_line(f"{report.duration:7.1f}  {report.nodeid}")
    terminalreporter.section("tiers")
    for tier in TIERS:
        counts = {
            outcome: len([report for report in terminalreporter.stats.get(outcome, []) if _in_tier(report, tier)])
            for outcome in ("passed", "failed", "error", "xfailed")
        }
        if said := ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count):
            terminalreporter.write_line(f"{tier + ' tests':<14} {said}")


def _in_tier(report: object, tier: str) -> bool:
    """Whether a report is of a test of that tier; a file that could not be collected is of none."""
    return isinstance(report, pytest.TestReport) and tier in report.keywords
