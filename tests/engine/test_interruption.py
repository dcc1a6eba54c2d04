"""What a user does when an update was broken off, and what he finds: the commands of docs/operations.md."""

import itertools
import signal
import time
from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from tests.engine.conftest import PROGRAMS, MakeProject, MakeStack
from tests.engine.harness import ADOPT
from tests.engine.platform_stack import Rays, existing, training

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(240)]

NUMBERS = itertools.count(1)
SHELVES = 30


@pytest.mark.parametrize("made_before", [1, SHELVES // 2])
def test_a_killed_update_is_recovered_without_loss_or_doubles(
    project: MakeProject, cluster: Rehearsal, made_before: int
) -> None:
    core = client.CoreV1Api(cluster.client())
    store = project(PROGRAMS / "shelves.py", cluster=cluster)
    namespace = f"store-{next(NUMBERS)}"
    store.configure("namespace", namespace)
    store.configure("shelves", str(SHELVES))

    def found() -> list[dict[str, Any]]:
        items = core.list_namespaced_config_map(namespace).to_dict()["items"]
        return [item for item in items if item["metadata"]["name"].startswith("shelf-")]

    def shelves() -> int:
        return len(found())

    store.killed(lambda: shelves() >= made_before)
    assert shelves() < SHELVES, "killed too late for a test"

    locked = store.up(fails=True).output
    assert "the stack is currently locked by 1 lock" in locked
    assert "pulumi cancel" in locked

    store.release()
    store.up(environment=ADOPT)
    store.up()
    store.changes_nothing()
    assert shelves() == SHELVES
    store.configure("height", "2")
    store.up()
    assert all(shelf["data"] == {"height": "2"} for shelf in found())
    assert len(store.resources()) == SHELVES + 3  # the stack, its provider and the namespace

    store.pulumi("destroy", "--yes", "--skip-preview")
    assert store.resources() == []
    assert namespace not in {item["metadata"]["name"] for item in core.list_namespace().to_dict()["items"]}


@pytest.mark.timeout(900)
def test_an_update_killed_when_its_raycluster_comes_is_recovered(
    stack_on_operator: MakeStack, rays: Rays, cluster: Rehearsal
) -> None:
    """The program's own stack: killed when the tenant's namespace comes, and its recovery when the RayCluster does."""
    dev = stack_on_operator("killed")
    dev.killed(lambda: "namespace team-a" in existing(cluster))
    dev.release()
    dev.killed(lambda: rays.there("team-a", "training"), environment=ADOPT)
    dev.release()
    dev.up(environment=ADOPT)
    dev.up()
    dev.changes_nothing()
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
    dev.edit(lambda settings: training(settings).update(idleTimeout="7m"))
    dev.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 420
    dev.destroy()


def test_of_two_updates_at_once_one_is_refused_and_the_other_goes_on(project: MakeProject) -> None:
    shop = project(
        """
        import pathlib, time
        print("the first one runs", flush=True)
        while not pathlib.Path("finish").exists():
            time.sleep(0.1)
        """
    )
    first = shop.start("up", "--yes", "--skip-preview")
    assert first.stdout is not None
    for line in first.stdout:
        if "the first one runs" in line:
            break
    assert "the stack is currently locked by 1 lock" in shop.up(fails=True).output
    (shop.folder / "finish").touch()
    output, _ = first.communicate(timeout=60)
    assert first.returncode == 0, output


def test_an_interrupted_update_leaves_a_state_that_the_next_one_continues(
    project: MakeProject, cluster: Rehearsal
) -> None:
    """Ctrl-C lets the engine finish what it has begun, so nothing has to be repaired."""
    core = client.CoreV1Api(cluster.client())
    store = project(PROGRAMS / "shelves.py", cluster=cluster)
    namespace = f"store-{next(NUMBERS)}"
    store.configure("namespace", namespace)
    store.configure("shelves", str(SHELVES))
    update = store.start("up", "--yes", "--skip-preview")
    while len(core.list_namespaced_config_map(namespace).to_dict()["items"]) < 5:
        assert update.poll() is None, update.communicate()[0]
        time.sleep(0.02)
    update.send_signal(signal.SIGINT)
    output, _ = update.communicate(timeout=60)
    assert update.returncode != 0, output
    assert "update canceled" in output
    store.up()
    store.changes_nothing()
    store.pulumi("destroy", "--yes", "--skip-preview")
    assert store.resources() == []
