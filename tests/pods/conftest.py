"""What the tests with real pods share: one node with the stack on it, and what is told of it when a test fails."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped] # has none

from core.nodes import NodePool
from local.images import IMAGES
from local.install import install_missing
from local.real_node import RealNode, unmet
from local.rehearsal import Rehearsal
from testbed.platform_stack import training
from testbed.pods.node import Node
from testbed.pods.platform import GANGS, NAMESPACE, REVIEWED, SECURED, USER, Platform, brought_up
from testbed.pods.steps import TABLE, Steps
from tests.pods.machine import traces

LEFT_OUT = pytest.StashKey[str]()

RECENT = 300.0
"""Seconds before a test that failed from which on logs are of interest: its fixtures may have had their part in it."""

BARE = NodePool(pool="bare", count=1, cpu="8", memory="16Gi", gpus=4)

LAST = "test_removal.py"

WITHOUT_STACK = ("test_box.py", "test_redis.py")


@pytest.hookimpl(trylast=True)  # after -m has chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the removal of stack and node last, and leaves the tier out where it cannot run."""
    items.sort(key=lambda item: item.path.name == LAST)
    tier = [item for item in items if item.get_closest_marker("pods")]
    reasons = "; ".join(unmet())
    if not tier or not reasons:
        return
    config.stash[LEFT_OUT] = reasons
    config.hook.pytest_deselected(items=tier)
    items[:] = [item for item in items if item not in tier]


class ByNode(LoadScopeScheduling):  # type: ignore[misc] # the same
    """Of two processes one has the tests on the node with the stack, the other those on a node without."""

    def _split_scope(self, nodeid: str) -> str:
        return "node" if nodeid.partition("::")[0].endswith(WITHOUT_STACK) else "stack"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByNode | None:
    """Who runs what, with `--dist loadscope`."""
    return ByNode(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A tier that is left out is no mistake of whoever asked for the tests, but continuous integration has to run it.

    A process that runs a part of the tests hands what it has to tell to the one that prints.
    """
    stash = session.config.stash
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output |= {"table": stash.get(TABLE, []), "left out": stash.get(LEFT_OUT, "")}
    if LEFT_OUT in stash and os.environ.get("CI") == "true":
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    elif LEFT_OUT in stash and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes what one of the processes has to tell."""
    output = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(TABLE, []).extend(output.get("table", []))
    if reasons := output.get("left out"):
        node.config.stash[LEFT_OUT] = reasons


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
        install_missing()
        RealNode(tmp_path_factory.mktemp("none")).build(image.reference for image in IMAGES)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the node with the stack has its things."""
    return tmp_path_factory.mktemp("pods")


@pytest.fixture(scope="session")
def before(built: None, folder: Path) -> set[str]:
    """What the machine was like before there was a real node."""
    return traces(folder / "run")


SMALL = {"resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}}}
"""An autoscaler that reserves little. With KubeRay's own 500m for both of them a machine with two cores has no room for
a worker beside one that is idle."""


def _tested(settings: dict[str, Any]) -> None:
    """What the tests change of the stack file: idle workers go soon, Volcano schedules, and there are more RayClusters.

    All come up with the stack. An `up` for each of them, and another to remove it, would take most of the tier's time.
    """
    tenant = settings["tenants"][0]
    training(settings)["idleTimeout"] = "5s"
    alone = {key: said for key, said in training(settings).items() if key not in ("workers", "idleTimeout")}
    tenant["clusters"] += [
        {**training(settings), "name": SECURED, "tls": {}, "overrides": {"autoscalerOptions": SMALL}},
        {**alone, "name": REVIEWED, "autoscaling": False, "authOptions": {"enableK8sTokenAuth": True}},
    ]
    settings["scheduler"] = {"volcano": {}}
    tenant["queue"] = {"capability": {"gpus": 8}}
    tenant["clusterNames"] = list(GANGS)
    tenant["users"] = [{"subject": f"serviceAccount:{NAMESPACE}/{USER}", "clusters": [REVIEWED]}]


@pytest.fixture(scope="session")
def platform(before: set[str], folder: Path, steps: Steps) -> Iterator[Platform]:
    """The stack for real pods on its node, brought up once for all tests."""
    with brought_up(folder, steps, _tested) as platform:
        yield platform


@pytest.fixture(scope="session")
def node(built: None, tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> Iterator[Node]:
    """A node without a stack."""
    rehearsal = Rehearsal(tmp_path_factory.mktemp("node") / "run", "real")
    try:
        with steps.step("another node: from nothing to Ready"):
            rehearsal.start([BARE])
        yield Node(rehearsal)
    finally:
        rehearsal.stop(clean=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds pods, events and logs to the report of a failed test."""
    report = yield
    if report.failed:
        for node in getattr(item, "funcargs", {}).values():
            if isinstance(node, Node):
                report.sections.append(("the node", node.evidence(call.start - RECENT)))
    return report
