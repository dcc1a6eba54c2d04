"""A real node leaves nothing behind, however it ends, and does not affect another one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kubernetes import client

from core.nodes import NodePool
from local import paths
from local.errors import RehearsalError
from local.nodes import live
from local.real_node.box import Box
from local.rehearsal import Rehearsal
from testbed.pods.node import Node
from testbed.pods.steps import Steps, until
from tests.pods.machine import traces

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(180, func_only=True)]

POOL = NodePool(pool="a100", count=1, cpu="8", memory="16Gi", gpus=4, gpu_product="NVIDIA-A100", labels={"tier": "x"})


START = """
import os, signal, sys
from pathlib import Path
from local.rehearsal import Rehearsal

def report(done, step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

Rehearsal(Path(sys.argv[1]), "real").start([], report)
"""
"""The first step of `make up`, killed when a step of it begins."""


@pytest.fixture
def second(built: None, tmp_path: Path) -> Iterator[Rehearsal]:
    """A second node beside the one with the stack."""
    made = Rehearsal(tmp_path / "run", "real")
    yield made
    made.stop(clean=True)


def test_a_second_node_is_independent(node: Node, second: Rehearsal, steps: Steps) -> None:
    with steps.step("a second node beside the first"):
        second.start([POOL])
    assert second.placement.address != node.rehearsal.placement.address
    (other,) = live(second.client())
    assert other["metadata"]["labels"].items() >= {"tier": "x", "nvidia.com/gpu.product": "NVIDIA-A100"}.items()
    assert other["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    node.create_namespace("of-the-first")
    assert "of-the-first" in _namespaces(node.rehearsal) - _namespaces(second)


@pytest.mark.parametrize("victim", ["unshare", "supervisord"])
def test_after_a_kill_stop_leaves_nothing(node: Node, second: Rehearsal, steps: Steps, victim: str) -> None:
    before = traces(second.run)
    second.start([POOL])
    assert traces(second.run) - before, "the node leaves no traces"
    os.kill(_process(second, victim).pid, signal.SIGKILL)
    until(lambda: not list(second.supervisor.strays()), "the node's processes are gone")
    with steps.step(f"clean up after {victim} was killed"):
        second.stop()
    assert traces(second.run) - before == set()
    assert Rehearsal(second.run).kind == "real", "the folder has lost its kind of nodes"
    second.start([POOL])
    assert len(live(second.client())) == 1
    node.rehearsal.check()


@pytest.mark.parametrize("step", ["etcd", "nodes"])
def test_a_start_that_is_killed_half_way_is_cleaned_up(node: Node, second: Rehearsal, steps: Steps, step: str) -> None:
    """At its first program, and when all run."""
    before = traces(second.run)
    start = subprocess.run([sys.executable, "-c", START, second.run, step], cwd=paths.ROOT, check=False)
    assert start.returncode == -signal.SIGKILL
    assert traces(second.run) - before, "the start leaves no traces"
    with steps.step(f"clean up after a start that was killed at {step}"):
        second.stop(clean=True)
    assert traces(second.run) - before == set()
    assert list(second.supervisor.strays()) == []
    node.rehearsal.check()


def test_a_dead_proxy_is_not_used(behind_a_proxy: None, second: Rehearsal) -> None:
    second.start([POOL])
    assert len(live(second.client())) == 1


def test_an_address_in_use_is_reported(second: Rehearsal) -> None:
    before = traces(second.run)
    address = f"{Box(second.run).outside}/32"
    subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True)
    try:
        with pytest.raises(RehearsalError, match=r"the real node's address 198\.\S+ is in use by lo"):
            second.start([POOL])
    finally:
        subprocess.run(["ip", "address", "delete", address, "dev", "lo"], check=True)
    assert traces(second.run) - before == set()


def _process(rehearsal: Rehearsal, name: str) -> psutil.Process:
    """`unshare` waits outside the box for the first process inside it, supervisord."""
    strays = list(rehearsal.supervisor.strays())
    (outside,) = (process for process in strays if process.name() == "unshare")
    return outside if name == "unshare" else outside.children()[0]


def _namespaces(rehearsal: Rehearsal) -> set[str]:
    found = client.CoreV1Api(rehearsal.client()).list_namespace().items
    return {str(each.metadata.name) for each in found if each.metadata}
