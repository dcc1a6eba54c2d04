"""A removed worker group is emptied while Ray's autoscaler runs, and no busy worker is lost."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from components.rollout.pods import Pods, group
from components.rollout.retirement import Groups, NotRetiredError, retire
from local.rehearsal import Rehearsal
from testbed.client_session import ClientSession
from testbed.edits.autoscalers import JSON_PATCH, Autoscalers
from testbed.edits.drawn import seeded
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays
from tests.engine.ray_edits import spec

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

NAMESPACE, NAME = "retiring", "training"
FULL = f"{NAMESPACE}/{NAME}"

SEED = 3

LIMIT = 120.0
"""Seconds. All work ends long before."""


class PlayedPods(Pods):
    """The RayCluster's pods, with simulated autoscalers: these know busy workers, and give drained ones no work."""

    players: Autoscalers

    def ask(self, pods: Iterable[Mapping[str, Any]], drain: Mapping[str, float | None]) -> dict[str, Any]:
        with self.players.still():
            busy = {worker.pod for worker in self.players.busy}
            states = {pod["metadata"]["name"]: self._state(pod["metadata"]["name"], busy) for pod in pods}
            accepted = [name for name, until in drain.items() if until is not None or name not in busy]
            self.players.drained.update(accepted)
        return {"ray": "2.60.0", "nodes": states, "accepted": accepted}

    def _state(self, name: str, busy: set[str]) -> str:
        if name in self.players.drained:
            return "DRAINING" if name in busy else "DEAD"
        return "RUNNING" if name in busy else "IDLE"


@pytest.fixture
def players(shared_cluster: Rehearsal, operator: None) -> Iterator[Autoscalers]:
    """The autoscaler of a RayCluster with worker groups `small` and `big`."""
    kubectl, spec_ = Kubectl(shared_cluster), spec(scales=True)
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": NAME, "namespace": NAMESPACE}}
    kubectl.does("create", "namespace", NAMESPACE)
    try:
        kubectl.does("apply", "--server-side", "--filename=-", bodies=[{**body, "spec": spec_}])
        ready = "--for=condition=HeadPodReady"
        kubectl.does("wait", ready, f"--namespace={NAMESPACE}", f"raycluster/{NAME}", "--timeout=300s")
        yield Autoscalers(shared_cluster.client(), seeded(SEED))
    finally:
        kubectl.does("delete", "namespace", NAMESPACE, "--timeout=300s")


def until(what: str, holds: Callable[[], bool], seconds: float = 300) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.1)


def test_a_removed_group_is_drained_and_an_interrupted_retirement_continues(
    players: Autoscalers, rays: Rays, shared_cluster: Rehearsal
) -> None:
    session = ClientSession(shared_cluster.client())
    alive, there = Groups(session, NAMESPACE, NAME), PlayedPods(session, NAMESPACE, NAME)
    there.players = players

    def busy() -> bool:
        with players.still():
            return any(worker.group == "big" for worker in players.busy)

    def interrupts(_waiting: str) -> None:
        raise KeyboardInterrupt

    def big() -> dict[str, Any]:
        return next(dict(each) for each in alive.all() if each["groupName"] == "big")

    with players.playing():
        players.take_over([FULL])
        until("a worker of the group is busy", busy)
        with pytest.raises(NotRetiredError, match="worker group big is removed from the stack file, and has workers"):
            retire(alive, there, ["small"], "none", 0)
        with pytest.raises(KeyboardInterrupt):
            retire(alive, there, ["small"], "drain", LIMIT, interrupts)
        for _ in range(2):
            # The second time there is nothing to do.
            retire(alive, there, ["small"], "drain", LIMIT)
        assert (big()["minReplicas"], big()["replicas"], big()["maxReplicas"]) == (0, 0, 0)
        assert not [pod for pod in there.all() if group(pod) == "big"]
        remove = [{"op": "remove", "path": f"/spec/workerGroupSpecs/{_place(alive)}"}]
        rays.patch(NAMESPACE, NAME, remove, _content_type=JSON_PATCH)
        with players.still():
            before, players.scales = players.patches, 1.0
        until("the autoscaler continues without the group", lambda: players.patches > before + 3)
    assert not players.lost
    # The test would be useless if nothing had been drained.
    assert players.drained


def _place(alive: Groups) -> int:
    return [each["groupName"] for each in alive.all()].index("big")
