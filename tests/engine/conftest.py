"""Fixtures of the engine tests: plugins, control planes, and logs in the report of a failed test."""

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from kubernetes import client

from core.nodes import NodePool
from local.plugins import Mode, Selection, select
from local.rehearsal import Rehearsal
from testbed.harness import Project
from testbed.platform_stack import Rays, Stack, install_operator, on_operator, rehearsing
from testbed.warm_python import warm_python
from tests.conftest import LINE

POOL = NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB")

PROGRAMS = Path(__file__).parent / "programs"

MakeProject = Callable[..., Project]

MakeStack = Callable[[str], Stack]


@pytest.fixture(scope="session")
def warm() -> Iterator[Mapping[str, str]]:
    """The variables with which Python starts warm."""
    with warm_python() as variables:
        yield variables


@pytest.fixture(scope="module", autouse=True)
def starts_warm(warm: Mapping[str, str]) -> Iterator[None]:
    """Lets Pulumi's Python processes start warm."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in warm.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def plugins() -> Selection:
    """The plugins that PLUGINS selects; the tests pass with all."""
    return select(cast("Mode", os.environ.get("PLUGINS", "auto")))


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """The control plane of files with the mark `shared_cluster`. Each file uses separate namespaces, removes them, and
    installs no operator."""
    with rehearsing(tmp_path_factory.mktemp("shared") / "run", POOL) as rehearsal:
        yield rehearsal


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """The control plane of a file: the shared one with that mark, else a separate one."""
    if request.node.get_closest_marker("shared_cluster"):
        yield request.getfixturevalue("shared_cluster")
        return
    with rehearsing(tmp_path_factory.mktemp("cluster") / "run", POOL) as rehearsal:
        yield rehearsal


@pytest.fixture(scope="module")
def core(cluster: Rehearsal) -> client.CoreV1Api:
    """A client with the administrator's rights."""
    return client.CoreV1Api(cluster.client())


@pytest.fixture
def project(tmp_path: Path, plugins: Selection) -> MakeProject:
    """Creates a project from a program: its code, or a file of `programs`; on a `cluster`, if it needs one."""

    def make(program: str | Path, cluster: Rehearsal | None = None, **described: Any) -> Project:
        made = Project.make(tmp_path, program, plugins, **described)
        made.environment["KUBECONFIG"] = str(cluster.kubeconfig) if cluster else os.devnull
        return made

    return make


@pytest.fixture(scope="module")
def rays(cluster: Rehearsal) -> Rays:
    """The RayClusters on the control plane."""
    return Rays(cluster)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, cluster: Rehearsal, plugins: Selection) -> MakeStack:
    """Creates a stack with this name from the dev stack's file. The test destroys it."""
    return lambda name: Stack(name, tmp_path_factory.mktemp("stack"), cluster, plugins)


@pytest.fixture(scope="session")
def operator(shared_cluster: Rehearsal) -> None:
    """The operator on the shared control plane. Installing it would take most of a stack's time."""
    install_operator(shared_cluster)


@pytest.fixture(scope="module")
def stack_on_operator(
    tmp_path_factory: pytest.TempPathFactory, shared_cluster: Rehearsal, plugins: Selection, operator: None
) -> Iterator[MakeStack]:
    """Creates a stack like `stack`, but with the existing operator. What its tests leave of it is destroyed: the next
    file has the same control plane."""
    made: list[Stack] = []

    def make(name: str) -> Stack:
        folder = tmp_path_factory.mktemp("stack")
        made.append(Stack(name, folder, shared_cluster, plugins, original=on_operator(folder / "original.yaml")))
        return made[-1]

    yield make
    for each in made:
        if each.resources():
            each.destroy()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the ends of the control plane's logs to the report of a failed test."""
    report = yield
    rehearsal = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(rehearsal, Rehearsal):
        for state in rehearsal.states():
            lines = [line[:LINE] for line in state.tail(10).splitlines()]
            report.sections.append((f"log of {state.name} ({state.description})", "\n".join(lines)))
    return report
