"""A real node leaves nothing behind, however it ends, and does not meddle with another one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kubernetes import client

from local.nodes import live
from local.rehearsal import Rehearsal
from stacks.settings import NodePool
from tests.pods.machine import traces
from tests.pods.platform import Platform
from tests.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.timeout(180, func_only=True)]

POOL = NodePool(pool="a100", count=1, cpu="8", memory="16Gi", gpus=4, gpu_product="NVIDIA-A100", labels={"tier": "x"})


@pytest.fixture
def second(built: None, tmp_path: Path) -> Iterator[Rehearsal]:
    """A second node beside the one with the stack."""
    made = Rehearsal(tmp_path / "run", "real")
    yield made
    made.stop(clean=True)


def test_a_second_node_is_one_of_its_own(platform: Platform, second: Rehearsal, steps: Steps) -> None:
    with steps.step("a second node beside the first"):
        second.start([POOL])
    assert second.placement.address != platform.rehearsal.placement.address
    (node,) = live(second.client())
    assert node["metadata"]["labels"].items() >= {"tier": "x", "nvidia.com/gpu.product": "NVIDIA-A100"}.items()
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert _pods(second) == []
    assert len(_pods(platform.rehearsal)) >= 2


@pytest.mark.parametrize("victim", ["unshare", "supervisord"])
def test_after_a_kill_stop_leaves_nothing(platform: Platform, second: Rehearsal, steps: Steps, victim: str) -> None:
    before = traces()
    second.start([POOL])
    assert traces() - before, "the node cannot be seen"
    os.kill(_process(second, victim).pid, signal.SIGKILL)
    until(lambda: not list(second.supervisor.strays()), "the node's processes are gone", 15)
    with steps.step(f"clean up after {victim} was killed"):
        second.stop()
    assert traces() - before == set()
    assert Rehearsal(second.run).kind == "real", "the folder does not remember that its node is a real one"
    second.start([POOL])
    assert len(live(second.client())) == 1


def _process(rehearsal: Rehearsal, name: str) -> psutil.Process:
    """`unshare` waits outside the box for the first process inside it, supervisord."""
    strays = list(rehearsal.supervisor.strays())
    (outside,) = (process for process in strays if process.name() == "unshare")
    return outside if name == "unshare" else outside.children()[0]


def _pods(rehearsal: Rehearsal) -> list[client.V1Pod]:
    return list(client.CoreV1Api(rehearsal.client()).list_pod_for_all_namespaces().items)
