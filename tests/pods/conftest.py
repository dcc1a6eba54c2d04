"""Fixtures of the tests with real pods: one node with the stack, and its logs in the report of a failed test."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped] # has none

from core.nodes import NodePool
from local.images import AHEAD
from local.images.programs import VOLCANO_PROGRAMS
from local.images.ray import RAY
from local.install import install_missing
from local.real_node import RealNode, unmet
from local.rehearsal import Rehearsal
from local.volumes import PROVISIONER
from testbed.failover.day import LOSSES
from testbed.platform_stack import training
from testbed.pods import mirror
from testbed.pods.node import Node
from testbed.pods.platform import (
    CLUSTER,
    GANGS,
    NAMESPACE,
    REVIEWED,
    SECURED,
    SUBMITTER,
    USER,
    Platform,
    brought_up,
)
from testbed.pods.steps import TABLE, Steps
from testbed.warm_python import warm_python
from tests.pods.machine import traces

SKIPPED = pytest.StashKey[str]()

RECENT = 300.0
"""Logs of a failed test begin this many seconds before it, because its fixtures may be the cause."""

BARE = NodePool(pool="bare", count=1, cpu="8", memory="16Gi", gpus=4)

FIRST = (
    "failover/",
    "test_external_clusters.py",
    "test_run_history.py",
    "test_ray_jobs.py",
    "test_box.py",
    "test_redis.py",
)
"""What one process runs, in this order: failovers of Redis on a node with a stack of their own; files that begin
without RayClusters, the last of which adds Volcano; files on a bare node."""

SECOND = (
    "test_removal.py",
    "test_idle_termination.py",
    "test_logs.py",
    "test_mirror.py",
    "test_ray_services.py",
)
"""What the other process runs after the tests of the stack with everything: its removal, and more files that begin
without RayClusters."""


def _place(nodeid: str) -> tuple[int, int]:
    """The process of a test and its place there. Those of other tiers have a third process."""
    if not nodeid.startswith("tests/pods/"):
        return 2, 0
    file = nodeid.removeprefix("tests/pods/").partition("::")[0]
    for place, name in enumerate(FIRST):
        if file.startswith(name):
            return 0, place
    return 1, SECOND.index(file) + 1 if file in SECOND else 0


@pytest.hookimpl(trylast=True)  # after -m has selected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the tests of a node together, and skips the tier where it cannot run."""
    items.sort(key=lambda item: _place(item.nodeid))
    tier = [item for item in items if item.get_closest_marker("pods")]
    reasons = "; ".join(unmet())
    if not tier or not reasons:
        return
    config.stash[SKIPPED] = reasons
    config.hook.pytest_deselected(items=tier)
    items[:] = [item for item in items if item not in tier]


class ByNode(LoadScopeScheduling):  # type: ignore[misc] # the same
    """Two processes have the nodes, and take about as long."""

    def _split_scope(self, nodeid: str) -> str:
        process, _ = _place(nodeid)
        return str(process)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByNode | None:
    """The scheduler for `--dist loadscope`."""
    return ByNode(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped tier is not an error, except in continuous integration.

    A worker process sends its report to the process that prints.
    """
    stash = session.config.stash
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output |= {"table": stash.get(TABLE, []), "skipped": stash.get(SKIPPED, ""), "losses": stash.get(LOSSES, "")}
    if SKIPPED in stash and os.environ.get("CI") == "true":
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    elif SKIPPED in stash and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes the report of a worker process."""
    output = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(TABLE, []).extend(output.get("table", []))
    for key, name in ((SKIPPED, "skipped"), (LOSSES, "losses")):
        if text := output.get(name):
            node.config.stash[key] = text


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the steps with their times, or why there are none."""
    if SKIPPED in config.stash:
        terminalreporter.write_line(f"tests with real pods are skipped: {config.stash[SKIPPED]}")
    table = config.stash.get(TABLE, [])
    if table:
        terminalreporter.section("real pods, seconds")
        for title, seconds in table:
            terminalreporter.write_line(f"{seconds:7.1f}  {title}")
    if losses := config.stash.get(LOSSES, ""):
        terminalreporter.section("masters of Redis lost, seconds")
        terminalreporter.write_line(losses)


@pytest.fixture(scope="session", autouse=True)
def starts_warm() -> Iterator[None]:
    """Lets Pulumi's Python processes start warm."""
    with warm_python() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def steps(pytestconfig: pytest.Config) -> Steps:
    """Measures steps for the table at the end."""
    return Steps(pytestconfig.stash.setdefault(TABLE, []))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> None:
    """Builds missing programs and images of the real node."""
    with steps.step("build what the cache lacks"):
        install_missing()
        RealNode(tmp_path_factory.mktemp("none")).build(image.reference for image in AHEAD)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the node with the stack."""
    return tmp_path_factory.mktemp("pods")


@pytest.fixture(scope="session")
def before(built: None, folder: Path) -> set[str]:
    """The traces on the machine before the first real node."""
    return traces(folder / "run")


SMALL = {"resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}}}
"""An autoscaler with small requests. With KubeRay's default of 500m for each of two autoscalers, a machine of two
cores has no room for a worker beside an idle one."""


def _tested(settings: dict[str, Any]) -> None:
    """Edits the stack file for the tests: idle workers end soon, Volcano schedules, and there are more RayClusters.

    All are created with the stack. An `up` to create and one to remove each of them would take most of the tier's time.
    """
    tenant = settings["tenants"][0]
    training(settings)["idleTimeout"] = "5s"
    training(settings)["storage"] = [{"name": "models", "mountPath": "/mnt/models", "hfHome": True}]
    for node in ("head", "workers"):
        training(settings)[node]["podTemplate"]["spec"]["securityContext"] = {"fsGroup": 100}  # docs/storage.md
    tenant["storage"] = [{"name": "models", "storageClass": "standard", "size": "1Gi", "retain": False}]
    alone = {key: value for key, value in training(settings).items() if key not in ("workers", "idleTimeout")}
    tenant["clusters"] += [
        {**training(settings), "name": SECURED, "tls": {}, "overrides": {"autoscalerOptions": SMALL}},
        {**alone, "name": REVIEWED, "autoscaling": False, "authOptions": {"enableK8sTokenAuth": True}},
    ]
    settings["scheduler"] = {"volcano": {"scheduler": {"ignoredProvisioners": [PROVISIONER]}}}
    settings["nodes"][0]["gpuHourPrice"] = 2
    soon = {"RayGpusIdle": {"after": "15s"}}
    small = {"resources": {"cpu": "20m", "memory": "512Mi"}, "storage": "1Gi"}
    settings["monitoring"] = {"mode": "install", "prometheus": small, "interval": "5s", "alerts": soon}
    tenant["queue"] = {"capability": {"gpus": 8}}
    tenant["clusterNames"] = list(GANGS)
    tenant["users"] = [
        {"subject": f"serviceAccount:{NAMESPACE}/{USER}", "clusters": [REVIEWED]},
        {"subject": f"serviceAccount:{NAMESPACE}/{SUBMITTER}", "clusters": [CLUSTER], "submitJobs": True},
    ]


@pytest.fixture(scope="session")
def platform(before: set[str], folder: Path, steps: Steps) -> Iterator[Platform]:
    """The stack for real pods on its node, created once for all tests."""
    with brought_up(folder, steps, _tested) as platform:
        yield platform


def _without_clusters(settings: dict[str, Any]) -> None:
    """There is no RayCluster, the operator has metrics, and KubeRay's image is on a mirror, if this machine can have
    one. The tests of jobs add Volcano, with which KubeRay starts no job on a RayCluster that exists."""
    (tenant,) = settings["tenants"]
    tenant["clusters"] = []
    if not mirror.missing():
        settings["images"] = {"mirrors": mirror.MIRRORS}
    settings["operator"]["metrics"] = True


@pytest.fixture(scope="session")
def without_clusters(built: None, tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> Iterator[Platform]:
    """A stack without RayClusters on a node of its own, to which files add jobs and services."""
    later = [RAY.reference, *(image.reference for image in VOLCANO_PROGRAMS)]
    with brought_up(tmp_path_factory.mktemp("jobs"), steps, _without_clusters, later) as platform:
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
