"""`ray-platform page`: output and exit codes, with a cluster that each test sets."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.cluster import Cluster, ClusterUnreachableError
from stacks.commands.page.command import page_source
from stacks.commands.page.server import Server
from stacks.commands.status import live
from stacks.commands.status.snapshot import Found, Live
from stacks.load import load
from stacks.planning.plan import plan_of
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster
from tests.unit.status.live import NOW, READY, found, pod, ray_cluster
from tests.unit.status.test_status_command import STACK


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, in_memory: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stack file, and no cluster."""
    monkeypatch.chdir(tmp_path)
    in_memory.fail(ClusterUnreachableError("no usable kubeconfig"))
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """The API server's errors at the next looks; without one it answers."""
    errors: list[Exception] = []

    def look(_cluster: Cluster, namespaces: Iterator[str], *_: Any) -> Live:
        if errors:
            raise errors.pop()
        team_a = found(rayclusters=[ray_cluster("training", *READY)], pods=[pod("head")])
        return Live(NOW, {each: team_a if each == "team-a" else Found() for each in namespaces})

    monkeypatch.setattr(live, "look", look)
    monkeypatch.setattr(live, "nodes", lambda _cluster: Found())
    return errors


def test_the_plan_is_written_as_a_page_without_a_cluster() -> None:
    done = stacks("page", "prod")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("<!doctype html>\n")
    assert done.stdout.endswith("</html>\n")
    assert "All 1 RayClusters" not in done.stdout
    assert "The RayCluster can start." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("stage",), "Pulumi.stage.yaml"),
        (("prod", "--port", "80"), "--port is for a live page: add --live"),
        (("prod", "--tenant", "team-a"), "--tenant is for a live page: add --live"),
        (("prod", "--live", "--tenant", "team-c"), "prod has no tenant 'team-c': did you mean 'team-b'?"),
        (("prod", "--live"), "the cluster cannot be read: no usable kubeconfig"),
    ],
)
def test_wrong_use_and_an_unreachable_cluster_end_with_2_and_one_message(
    arguments: tuple[str, ...], shown: str
) -> None:
    done = stacks("page", *arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert shown in done.stderr


@pytest.mark.usefixtures("answers")
def test_a_live_page_is_served_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []

    def interrupted(self: Server) -> None:
        pages.append(self.page())
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupted)
    done = stacks("page", "prod", "--live", "--port", "0")
    assert done.exit_code == 130
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stdout.endswith("/ shows prod, until Ctrl-C\n")
    assert "1 of 1 RayClusters ready" in pages[0]
    assert "team-b" in pages[0]
    assert stacks("page", "prod", "--live", "--port", "0", "--tenant", "team-a").exit_code == 130
    assert 'data-key="team-b' not in pages[1]


@pytest.mark.usefixtures("answers")
def test_a_port_in_use_ends_with_1_and_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = stacks("page", "prod", "--live", "--port", port)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"port {port} cannot be used (Address already in use): --port another, or 0 for any\n"


def test_after_an_outage_the_last_status_stays_with_the_reason(answers: list[Exception]) -> None:
    settings = load(Path("Pulumi.prod.yaml"))
    look = page_source("prod", plan_of(settings), settings, None, FakeCluster())
    assert "could not be read again" not in look()
    answers.append(ClusterUnreachableError("connection <refused>"))
    page = look()
    assert "the cluster could not be read again: connection &lt;refused&gt;" in page
    assert "1 of 1 RayClusters ready" in page
    assert "could not be read again" not in look()


def test_a_stack_on_cloudera_ml_alone_needs_no_cluster_and_is_as_status_shows_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CML_API_KEY", raising=False)
    resources = "resources: {cpu: 4, memory: 16}"
    cluster = f"{{name: training, project: one, rayVersion: 2.60.0, numWorkers: 2, {resources}}}"
    (folder / "Pulumi.cml.yaml").write_text(
        f"config:\n  ray-platform:cml: {{host: 'https://ml.example.test', clusters: [{cluster}]}}\n"
    )
    settings = load(Path("Pulumi.cml.yaml"))
    page = page_source("cml", plan_of(settings), settings, None, FakeCluster())()
    assert "▲ not as desired" in page
    assert "0 of 1 Ray clusters on Cloudera ML ready" in page
    assert "no API key of Cloudera ML: set CML_API_KEY" in page
    assert page.count('id="cml"') == 1
    assert "Not readable with these rights" not in page
