"""The disk under the rehearsal's state fills while an update runs: a real one of 16 megabytes.

Needs root and the right to mount. With CI=true it has to run.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from local.errors import RehearsalError
from local.plugins import Selection
from local.pulumi import RehearsalStack
from local.rehearsal import Rehearsal
from testbed.machine import empty, fill, small_disk
from testbed.platform_stack import Rays, existing, on_operator

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(900)]

MEGABYTES = 16

SECONDS = 180.0
"""Maximum time until the update has created its RayCluster."""


@pytest.fixture
def state_disk(cluster: Rehearsal) -> Iterator[Path]:
    """The folder of Pulumi's states, on a separate disk during the test."""
    folder = cluster.run / "pulumi"
    folder.mkdir(exist_ok=True)
    with small_disk(folder, MEGABYTES):
        yield folder


@pytest.fixture
def cordoned(core: client.CoreV1Api) -> Iterator[Callable[[], None]]:
    """All nodes take no new pods until the returned function is called, so that no RayCluster becomes ready."""

    def cordon(unschedulable: bool) -> None:
        nodes: Any = core.list_node()
        for node in nodes.items:
            core.patch_node(node.metadata.name, {"spec": {"unschedulable": unschedulable}})

    def uncordon() -> None:
        cordon(False)

    cordon(True)
    yield uncordon
    uncordon()


def test_the_state_survives_a_disk_that_fills_while_an_update_runs(
    state_disk: Path,
    cordoned: Callable[[], None],
    cluster: Rehearsal,
    operator: None,
    plugins: Selection,
    rays: Rays,
    tmp_path: Path,
) -> None:
    """The update's objects are in the cluster, but not in the restored state."""
    stack = RehearsalStack(cluster, plugins, "full", on_operator(tmp_path / "Pulumi.full.yaml"))
    ended = threading.Event()
    fills = threading.Thread(target=_fill_while_it_waits, args=(state_disk, rays, cordoned, ended))
    fills.start()
    try:
        with pytest.raises(RehearsalError, match=r"(?s)disk under .* is full.*back in place.*make up"):
            stack.up("--skip-preview")
    finally:
        ended.set()
        fills.join()
    state = next((state_disk / ".pulumi" / "stacks").glob("*/full.json"))
    assert "resources" not in json.loads(state.read_text())["checkpoint"]["latest"]

    fill(state_disk)
    with pytest.raises(RehearsalError, match=r"0\.\d MB are free under .*free at least 1\.\d MB"):
        stack.up("--skip-preview")

    empty(state_disk)
    stack.up("--skip-preview")
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
    assert stack.run("preview", "--expect-no-changes") == 0
    stack.run("destroy", "--yes", "--skip-preview")
    assert "namespace team-a" not in existing(cluster)


def _fill_while_it_waits(disk: Path, rays: Rays, uncordon: Callable[[], None], ended: threading.Event) -> None:
    """The update waits for its RayCluster until the nodes are uncordoned, so it cannot end before the disk is full. It
    does little else then: Pulumi repeats each write of the state for half a minute. Each failed write frees the space
    of the state that it cuts off, so the disk is filled until the update has ended."""
    end = time.monotonic() + SECONDS
    while not rays.exists("team-a", "training") and not ended.is_set() and time.monotonic() < end:
        time.sleep(0.2)
    fill(disk)
    uncordon()
    while not ended.wait(0.01):
        fill(disk)
