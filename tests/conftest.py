"""The tiers of tests: each test is in one, and the summary counts them. Generated cases have a fresh seed, which the
summary names."""

import os
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped] # has none

from local.control_plane import collection
from local.proxies import PROXIES, corrections

# Set before gRPC is imported. Its handlers for forks sometimes crash (a segmentation fault in its thread event_engine),
# and are not needed: each child process here runs another program.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# All Go programs collect garbage as late as API servers do, which costs memory and saves CPU.
os.environ.update(collection())

# As the Makefile does: without bytecode, which images often forbid, every process compiles what it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A test is not judged by its time: another process may have the machine. A seed alone repeats a run. With CI=true
# Hypothesis would draw the same cases in each run.
hypothesis.settings.register_profile(
    "bounded",
    deadline=None,
    database=None,
    derandomize=False,
    max_examples=200,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.register_profile("many", hypothesis.settings.get_profile("bounded"), max_examples=3000)
hypothesis.settings.load_profile("bounded")

SEED = "hypothesis_seed"
"""The option with the seed of generated cases."""

TIERS = ("unit", "engine", "pods")

SLOWER = 3
"""How much longer than its time limit a test may take. The limits are for two idle cores; a longer one costs only what
hangs."""

SLOWEST = 40
"""Number of engine tests whose times are shown."""

WAITING = ("tests/gateway/", "tests/redis/", "tests/rollout/")
"""Tests that mostly wait until Redis or Ray has noticed something, and need no control plane."""

ENDS = 8
"""Number of lines shown of the beginning and of the end of a failed test's message, each with LINE characters."""

LINE = 240
"""Maximum number of characters of a line in the summary."""

JUDGED = "judged by us and by the real thing"
"""The property of a test's report that `compared` records."""

Compared = Callable[[str, str, Mapping[str, int]], None]
"""Who else judges, what, and the number of cases by verdict."""


@pytest.fixture
def compared(record_property: Callable[[str, object], None]) -> Compared:
    """Records the cases for which our rules and the real thing gave the same verdict, for the summary of the tests.

    A test calls it after it has compared all of them.
    """

    def record(judge: str, what: str, cases: Mapping[str, int]) -> None:
        record_property(JUDGED, [judge, what, dict(cases)])

    return record


NOWHERE = "http://127.0.0.1:9"
"""A proxy that does not answer."""


@pytest.fixture
def behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment sets proxies, as in a company's network. They cannot reach this machine's own addresses."""
    for name in PROXIES:
        monkeypatch.setenv(name, NOWHERE)
        monkeypatch.setenv(name.upper(), NOWHERE)
    for name, exceptions in corrections(os.environ).items():
        monkeypatch.setenv(name, exceptions)


@pytest.hookimpl(tryfirst=True)  # Hypothesis reads the seed in the same hook
def pytest_configure(config: pytest.Config) -> None:
    """Lets tests reach their servers behind a proxy; draws a seed; lets Ctrl-C reach the programs that tests start,
    also where a shell has started the tests in the background, which ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(corrections(os.environ))
    if config.getoption(SEED) is None:
        given: Mapping[str, str] = getattr(config, "workerinput", {})
        setattr(config.option, SEED, given.get(SEED) or str(random.SystemRandom().randrange(2**32)))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Gives a worker process the seed of this one."""
    node.workerinput[SEED] = node.config.getoption(SEED)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Processes of `--numprocesses auto`: one for each core. Of `logical`: three for two cores, because engine tests
    wait for their cluster, too, and one more for WAITING."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2 + 1 if config.getoption("numprocesses") == "logical" else cores


class ByFile(LoadFileScheduling):  # type: ignore[misc] # the same
    """One process runs all tests of a file, and one process runs all tests of WAITING."""

    def _split_scope(self, nodeid: str) -> str:
        return "waiting" if nodeid.startswith(WAITING) else str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """The scheduler for `--dist loadfile`."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts WAITING first, then files without the shared control plane, so that a process has one control plane at a
    time, and of each the longest files, so that all processes end at about the same time.

    pytest-randomly has shuffled the files, and the tests within each. This keeps its order of files that take equally
    long, and of a file's tests but those with the mark `last`. The time limits of tests estimate how long a file takes;
    a test is stopped after SLOWER times its limit.
    Tests with real pods stay in the order of their files and lines: they edit one stack as the one before has left it.

    Refuses a test without a tier: no run of a tier would include it. Leaves out the marker `llm` unless it is selected.
    """
    if "llm" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("llm")])
        items[:] = [item for item in items if not item.get_closest_marker("llm")]
    homeless = [item.nodeid for item in items if len([tier for tier in TIERS if item.get_closest_marker(tier)]) != 1]
    if homeless:
        raise pytest.UsageError(f"tests without one marker of {', '.join(TIERS)}: {', '.join(homeless)}")
    items.sort(key=lambda item: (str(item.path), item.location[1] or 0) if item.get_closest_marker("pods") else ("", 0))
    longest: dict[os.PathLike[str], tuple[bool, bool, bool, float]] = defaultdict(lambda: (False, False, False, 0.0))
    for item in items:
        timeout = item.get_closest_marker("timeout")
        seconds = float(timeout.args[0]) if timeout else 0.0
        if timeout:
            item.add_marker(pytest.mark.timeout(SLOWER * seconds), append=False)
        if not item.get_closest_marker("pods"):
            first, of_engine = item.nodeid.startswith(WAITING), item.get_closest_marker("unit") is None
            alone = item.get_closest_marker("shared_cluster") is None
            longest[item.path] = max(longest[item.path], (first, of_engine, alone, seconds))
    items.sort(key=lambda item: longest[item.path], reverse=True)
    files = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in items))}
    items.sort(key=lambda item: (files[item.path], item.get_closest_marker("last") is not None))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The times of the slowest engine tests, a line for each tier with its counts, why tests were skipped, the seeds of
    the order and of generated cases, and last what failed, in a few lines each."""
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
        if line := ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count):
            terminalreporter.write_line(f"{tier + ' tests':<14} {line}")
    _write_compared(terminalreporter)
    skipped = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, count in skipped.items():
        terminalreporter.write_line(f"{count} tests are skipped: {reason.removeprefix('Skipped: ')}")
    terminalreporter.write_line(f"generated cases: to repeat them, add --hypothesis-seed={config.getoption(SEED)}")
    if order := config.getoption("randomly_seed", None):
        terminalreporter.write_line(f"order of the tests: to repeat it, add --randomly-seed={order}")
    _write_failures(terminalreporter)


def _write_failures(terminalreporter: pytest.TerminalReporter) -> None:
    """Each failed test with the ends of its message. pytest's own summary, which `-rN` turns off, has with CI=true the
    whole of it, such as the output of `pulumi up`."""
    failed = [*terminalreporter.stats.get("failed", []), *terminalreporter.stats.get("error", [])]
    if failed:
        terminalreporter.section("failed")
    for report in failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = (crash.message if crash else str(report.longrepr)).splitlines()
        short = lines if len(lines) <= 2 * ENDS else [*lines[:ENDS], "[...]", *lines[-ENDS:]]
        terminalreporter.write_line(f"{report.nodeid} ({report.when})")
        for line in short:
            terminalreporter.write_line(f"  {line[:LINE]}")


def _write_compared(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each comparison with the real thing: how many cases, and how many were judged differently."""
    rows = [
        (*value, report.failed)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in report.user_properties
        if name == JUDGED
    ]
    if rows:
        terminalreporter.section("compared with the real thing")
    for judge, what, cases, failed in sorted(rows, key=str):
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(cases.items()))
        differences = "a difference, above" if failed else "0 differences"
        terminalreporter.write_line(f"{sum(cases.values()):6}  {judge}, {what}: {differences} ({verdicts})")


def _in_tier(report: object, tier: str) -> bool:
    """Whether a report is of a test of that tier; a file that could not be collected has no tier."""
    return isinstance(report, pytest.TestReport) and tier in report.keywords
