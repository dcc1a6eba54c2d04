"""Fixtures of the gateway's tests: nodes, and gateways in front of them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest

from local.control_plane import free_ports
from testbed.machine import lacks
from tests.gateway.cable import Cable
from tests.gateway.nodes import Node, Nodes, missing
from tests.gateway.process import Gateway
from tests.gateway.waiting import eventually

MakeGateway = Callable[..., Gateway]


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """Skips the tests if Redis is missing, and reports that in the summary. Continuous integration has to have it."""
    if names := ", ".join(missing()):
        lacks(f"not on the PATH: {names}; they are in the packages redis-server and redis-sentinel")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """A master with two replicas in sync, and three Sentinels."""
    made = Nodes(tmp_path / "nodes")
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node without replicas."""
    one = Nodes(tmp_path_factory.mktemp("node")).redis[0]
    one.start()
    try:
        yield one
    finally:
        one.kill()


@pytest.fixture(scope="module")
def cable(node: Node) -> Iterator[Cable]:
    """A connection to the node that a test can break."""
    with Cable(node.port) as cable:
        yield cable


@pytest.fixture(scope="module")
def gateway_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway for tests that need no master."""
    one = Gateway(tmp_path_factory.mktemp("gateway"), redis=f"127.0.0.1:{next(free_ports())}")
    try:
        eventually("it listens", lambda: one.get("livez")[0] == 200)
        yield one
    finally:
        one.kill()


@pytest.fixture
def make_gateway(tmp_path: Path) -> Iterator[MakeGateway]:
    """Starts a gateway with settings in front of nodes."""
    made: list[Gateway] = []

    def make(nodes: Nodes, before: Sequence[str] = (), **settings: object) -> Gateway:
        made.append(Gateway(tmp_path / f"gateway-{len(made)}", nodes, before, **settings))
        return made[-1]

    try:
        yield make
    finally:
        for gateway in made:
            gateway.kill()


@pytest.fixture
def gateway(nodes: Nodes, make_gateway: MakeGateway) -> Gateway:
    """A gateway with default settings."""
    return make_gateway(nodes).wait_ready()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the end of the gateways' logs to the report of a failed test."""
    report = yield
    if report.failed and (folder := getattr(item, "funcargs", {}).get("tmp_path")):
        for log in sorted(folder.glob("gateway-*/log")):
            report.sections.append((f"log of {log.parent.name}", "\n".join(log.read_text().splitlines()[-40:])))
    return report
