"""Start, failures and stop of the rehearsal cluster, without Pulumi."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kubernetes import client

from core.nodes import NodePool
from local.errors import RehearsalError
from local.nodes import live
from local.plugins import Selection
from local.pulumi import RehearsalStack
from local.rehearsal import Rehearsal

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(240)]

POOL = NodePool(pool="a100", count=2, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB")


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    made = Rehearsal(tmp_path / "one")
    yield made
    made.stop(clean=True)


def test_nodes_are_ready_and_follow_the_stack(rehearsal: Rehearsal) -> None:
    rehearsal.start([POOL])
    assert _gpus(rehearsal) == {"a100-0": "8", "a100-1": "8"}
    rehearsal.start([POOL.model_copy(update={"count": 1, "gpus": 4})])
    assert _gpus(rehearsal) == {"a100-0": "4"}
    rehearsal.start([POOL.model_copy(update={"count": 1, "gpus": 0, "gpu_product": None})])
    [node] = live(rehearsal.client())
    assert "nvidia.com/gpu" not in {**node["status"]["capacity"], **node["status"]["allocatable"]}
    assert "nvidia.com/gpu.product" not in node["metadata"]["labels"]


def test_a_pod_is_ready_again_after_its_node_was_not(rehearsal: Rehearsal) -> None:
    rehearsal.start([POOL])
    core = client.CoreV1Api(rehearsal.client())
    _until(lambda: bool(core.list_namespaced_service_account("default").items))
    body: Any = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    core.create_namespaced_pod("default", body)

    def ready() -> str:
        found: Any = core.read_namespaced_pod("pod", "default")
        conditions = found.status.conditions or ()
        return next((each.status for each in conditions if each.type == "Ready"), "")

    _until(lambda: ready() == "True")
    by_the_node_controller = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    core.patch_namespaced_pod_status("pod", "default", by_the_node_controller)
    assert ready() == "False"
    _until(lambda: ready() == "True")


def test_everything_listens_on_loopback_only(rehearsal: Rehearsal) -> None:
    rehearsal.start([POOL])
    addresses = {
        connection.laddr.ip
        for process in rehearsal.supervisor.strays()
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


def test_a_part_that_ends_is_named_with_the_end_of_its_log(rehearsal: Rehearsal) -> None:
    rehearsal.start([POOL])
    scheduler = rehearsal.supervisor.state("kube-scheduler")
    _until(lambda: "Serving securely" in scheduler.tail())
    os.kill(scheduler.pid, signal.SIGKILL)
    _until(lambda: rehearsal.supervisor.state("kube-scheduler").crashed)
    with pytest.raises(RehearsalError, match=r"kube-scheduler has ended .*by a signal[\s\S]*Serving securely"):
        rehearsal.check()
    rehearsal.start([POOL])
    rehearsal.check()


def test_the_next_start_works_after_a_killed_supervisor(rehearsal: Rehearsal) -> None:
    rehearsal.start([POOL])
    before = _uid(rehearsal)
    os.kill(int((rehearsal.run / "supervisord.pid").read_text()), signal.SIGKILL)
    _until(lambda: not rehearsal.supervisor.alive)
    rehearsal.start([POOL])
    assert _uid(rehearsal) == before, "the data of the cluster are lost"
    assert len([state for state in rehearsal.states() if state.running]) == len(rehearsal.states())


def test_two_run_at_the_same_time_and_do_not_trust_each_other(rehearsal: Rehearsal, tmp_path: Path) -> None:
    other = Rehearsal(tmp_path / "two")
    try:
        rehearsal.start([POOL])
        other.start([POOL])
        assert _uid(rehearsal) != _uid(other)
        stranger = rehearsal.client()
        stranger.configuration.host = other.client().configuration.host
        with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
            client.VersionApi(stranger).get_code()
    finally:
        other.stop(clean=True)


def test_stop_leaves_no_process_and_clean_no_file(rehearsal: Rehearsal) -> None:
    rehearsal.start([POOL])
    rehearsal.stop()
    assert list(rehearsal.supervisor.strays()) == []
    assert (rehearsal.run / "etcd").is_dir()
    rehearsal.stop(clean=True)
    assert not rehearsal.run.exists()
    assert not rehearsal.supervisor.socket.exists()


def test_a_second_command_at_the_same_time_is_refused(rehearsal: Rehearsal) -> None:
    other = Rehearsal(rehearsal.run)
    changing = "another command is changing the rehearsal"
    with rehearsal.exclusively(), pytest.raises(RehearsalError, match=changing), other.exclusively():
        pytest.fail("both continued")


def test_a_stack_whose_creation_was_killed_is_used_by_the_next_command(
    rehearsal: Rehearsal, plugins: Selection
) -> None:
    """The command is killed between `pulumi stack init` and the first use of its output."""
    stack = RehearsalStack(rehearsal, plugins, "dev")
    stack.prepare()
    (salt,) = rehearsal.run.glob("pulumi/dev.salt")
    before = salt.read_text()
    salt.unlink()
    stack.prepare()
    assert salt.read_text() == before
    assert '"dev"' in stack.output("stack", "ls", "--json")


def _gpus(rehearsal: Rehearsal) -> dict[str, str]:
    return {
        node["metadata"]["name"]: node["status"]["allocatable"]["nvidia.com/gpu"] for node in live(rehearsal.client())
    }


def _uid(rehearsal: Rehearsal) -> str:
    namespace = client.CoreV1Api(rehearsal.client()).read_namespace("kube-system")
    assert namespace.metadata is not None
    return str(namespace.metadata.uid)


def _until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
