"""What the tests with real pods share: one node with the stack on it, and what is told of it when a test fails."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import cast

import pytest

from local import tools
from local.images import IMAGES
from local.plugins import Mode, select
from local.real_node import RealNode, unmet
from local.rehearsal import Rehearsal
from stacks.images import images_of
from stacks.settings import load
from tests.pods.machine import traces
from tests.pods.platform import FILE, Platform
from tests.pods.steps import TABLE, Steps

LEFT_OUT = pytest.StashKey[str]()

LAST = ("test_edits.py", "test_removal.py")


@pytest.hookimpl(trylast=True)  # after -m has chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the refused edit, which every later `up` would try again, and the removal of stack and node last.

    Leaves the tier out where it cannot run, and says why. Continuous integration has to run it.
    """
    items.sort(key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)
    tier = [item for item in items if item.get_closest_marker("pods")]
    reasons = "; ".join(unmet())
    if not tier or not reasons:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"the tests with real pods cannot run here: {reasons}")
    config.stash[LEFT_OUT] = reasons
    config.hook.pytest_deselected(items=tier)
    items[:] = [item for item in items if item not in tier]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A tier that is left out is no mistake of whoever asked for the tests."""
    if LEFT_OUT in session.config.stash and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The steps with their times, or why there are none."""
    if LEFT_OUT in config.stash:
        terminalreporter.write_line(f"tests with real pods are left out: {config.stash[LEFT_OUT]}")
    table = config.stash.get(TABLE, [])
    if table:
        terminalreporter.section("real pods, seconds")
        for title, seconds in table:
            terminalreporter.write_line(f"{seconds:7.1f}  {title}")


@pytest.fixture(scope="session")
def steps(pytestconfig: pytest.Config) -> Steps:
    """Measures steps for the table at the end."""
    return Steps(pytestconfig.stash.setdefault(TABLE, []))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> None:
    """The programs and images of the real node are there."""
    with steps.step("build what the cache does not hold"):
        tools.build_missing()
        RealNode(tmp_path_factory.mktemp("none")).build(image.reference for image in IMAGES)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the node with the stack has its things."""
    return tmp_path_factory.mktemp("pods")


@pytest.fixture(scope="session")
def before(built: None, folder: Path) -> set[str]:
    """What the machine was like before there was a real node."""
    return traces(folder / "run")


@pytest.fixture(scope="session")
def platform(before: set[str], folder: Path, pytestconfig: pytest.Config, steps: Steps) -> Iterator[Platform]:
    """The stack for real pods on its node, brought up once for all tests."""
    rehearsal = Rehearsal(folder / "run", "real")
    try:
        settings = load(FILE)
        wanted = images_of(settings)
        rehearsal.placement.check(wanted)
        with steps.step("node: from nothing to Ready"):
            rehearsal.start(settings.nodes)
        with steps.step("load the stack's images"):
            rehearsal.placement.load(wanted)
        platform = Platform(rehearsal, folder, select(cast("Mode", os.environ.get("PLUGINS", "auto"))))
        try:
            with steps.step("`pulumi up`: operator and a ready RayCluster"):
                platform.stack.up()
        except BaseException as error:
            error.add_note(platform.evidence())
            raise
        yield platform
    finally:
        rehearsal.stop(clean=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds pods, events and logs to the report of a failed test."""
    report = yield
    platform = getattr(item, "funcargs", {}).get("platform")
    if report.failed and isinstance(platform, Platform):
        report.sections.append(("the node", platform.evidence(call.start)))
    return report
