"""The tiers of tests: each test is in one, and the summary says how many of each there were."""

import os
from collections import Counter, defaultdict

import pytest

from local.proxies import PROXIES, corrections

# Before gRPC is imported. Its handlers for forks crash now and then (a segmentation fault in its thread event_engine),
# and are of no use: what is forked here becomes another program.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

TIERS = ("unit", "engine", "pods")

SLOWEST = 40
"""Of the engine tests, so many are shown with their times."""


NOWHERE = "http://127.0.0.1:9"
"""A proxy that does not answer."""


@pytest.fixture
def behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names proxies, as on a company's machine, and they do not know this machine's own addresses."""
    for name in PROXIES:
        monkeypatch.setenv(name, NOWHERE)
        monkeypatch.setenv(name.upper(), NOWHERE)
    for name, exceptions in corrections(os.environ).items():
        monkeypatch.setenv(name, exceptions)


def pytest_configure() -> None:
    """Lets tests reach what they start where the machine is behind a proxy."""
    os.environ.update(corrections(os.environ))


def pytest_xdist_auto_num_workers() -> int:
    """Processes of `--numprocesses logical`: three for two cores, because engine tests wait for their cluster, too."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first, so that in the end no process waits for another's; what a file's tests may take at
    most tells which those are. Tests with real pods have no other process to wait for, and an order of their own.

    Refuses a test without a tier: it would be left out when a tier is run by its name.
    """
    homeless = [item.nodeid for item in items if len([tier for tier in TIERS if item.get_closest_marker(tier)]) != 1]
    if homeless:
        raise pytest.UsageError(f"tests without one marker of {', '.join(TIERS)}: {', '.join(homeless)}")
    longest: dict[os.PathLike[str], tuple[bool, float]] = defaultdict(lambda: (False, 0.0))
    for item in items:
        timeout = item.get_closest_marker("timeout")
        seconds = float(timeout.args[0]) if timeout else 0.0
        if not item.get_closest_marker("pods"):
            longest[item.path] = max(longest[item.path], (item.get_closest_marker("unit") is None, seconds))
    items.sort(key=lambda item: longest[item.path], reverse=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The times of the slowest engine tests, a line for each tier with its counts, and why tests were left out."""
    engine = [report for report in terminalreporter.stats.get("passed", []) if _in_tier(report, "engine")]
    if engine:
        terminalreporter.section("engine tests, seconds")
    for report in sorted(engine, key=lambda report: -report.duration)[:SLOWEST]:
        terminalreporter.write_line(f"{report.duration:7.1f}  {report.nodeid}")
    terminalreporter.section("tiers")
    for tier in TIERS:
        counts = {
            outcome: len([report for report in terminalreporter.stats.get(outcome, []) if _in_tier(report, tier)])
            for outcome in ("passed", "failed", "error", "skipped", "xfailed")
        }
        if said := ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count):
            terminalreporter.write_line(f"{tier + ' tests':<14} {said}")
    skipped = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, count in skipped.items():
        terminalreporter.write_line(f"{count} tests are left out: {reason.removeprefix('Skipped: ')}")


def _in_tier(report: object, tier: str) -> bool:
    """Whether a report is of a test of that tier; a file that could not be collected is of none."""
    return isinstance(report, pytest.TestReport) and tier in report.keywords
