"""The number of workers that Ray's autoscaler has set stays when the RayCluster is edited."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from components.payloads.idle_termination import FIELD_MANAGER, rests_since
from components.ray_cluster.changes import restore
from components.ray_cluster.request import DIGEST
from local.rehearsal import Rehearsal
from testbed.client_session import ClientSession
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays, Stack, training
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(900)]

NAMESPACE, NAME = "team-a", "training"

JSON_PATCH = "application/json-patch+json"


class Autoscaler:
    """Writes into the RayCluster like Ray's own: by a group's index, with its own field manager."""

    def __init__(self, rays: Rays) -> None:
        self._rays = rays

    def groups(self) -> dict[str, dict[str, Any]]:
        """The worker groups by name, in their order."""
        return {group["groupName"]: group for group in self._rays.read(NAMESPACE, NAME)["spec"]["workerGroupSpecs"]}

    def write(self, group: str, key: str, value: Any) -> None:
        place = list(self.groups()).index(group)
        patch = [{"op": "add", "path": f"/spec/workerGroupSpecs/{place}/{key}", "value": value}]
        self._rays.patch(NAMESPACE, NAME, patch, field_manager="python-requests", _content_type=JSON_PATCH)

    @contextmanager
    def at_work(self, group: str) -> Iterator[None]:
        """Removes a worker repeatedly."""
        ending = threading.Event()

        def work() -> None:
            number = 0
            while not ending.wait(0.2):
                number += 1
                self.write(group, "scaleStrategy", {"workersToDelete": [f"gone-{number}"]})

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield
        finally:
            ending.set()
            worker.join()


@pytest.fixture(scope="module")
def dev(stack_on_operator: MakeStack) -> Stack:
    """A stack with a RayCluster that scales. Each test needs `scaling`."""
    return stack_on_operator("scaling")


@pytest.fixture
def scaling(dev: Stack) -> Stack:
    """The stack after `pulumi up`, with its original file."""
    return dev.settle()


@pytest.fixture
def autoscaler(rays: Rays) -> Autoscaler:
    return Autoscaler(rays)


def scaling_is_not_a_difference(scaling: Stack, autoscaler: Autoscaler) -> None:
    autoscaler.write("a100-1gpu", "replicas", 2)
    autoscaler.write("a100-8gpu", "replicas", 1)
    scaling.changes_nothing(refreshed=True)
    autoscaler.write("a100-8gpu", "replicas", 3)
    scaling.changes_nothing()
    assert [group["replicas"] for group in autoscaler.groups().values()] == [2, 0, 0, 3]


def an_edit_of_another_setting_keeps_the_workers(scaling: Stack, autoscaler: Autoscaler, rays: Rays) -> None:
    scaling.edit(lambda settings: training(settings).update(labels={"cost-center": "research"}))
    scaling.up()
    assert rays.read(NAMESPACE, NAME)["metadata"]["labels"]["cost-center"] == "research"
    assert [group["replicas"] for group in autoscaler.groups().values()] == [2, 0, 0, 3]
    scaling.changes_nothing()


def an_edit_of_a_mirror_alone_keeps_the_workers_and_is_not_refused(
    scaling: Stack, autoscaler: Autoscaler, rays: Rays
) -> None:
    autoscaler.write("a100-1gpu", "replicas", 2)
    autoscaler.write("a100-8gpu", "replicas", 3)
    scaling.edit(lambda settings: settings.update(images={"mirrors": {"docker.io": "mirror.example"}}))
    scaling.up()
    head = rays.read(NAMESPACE, NAME)["spec"]["headGroupSpec"]["template"]["spec"]
    assert head["containers"][0]["image"].startswith("mirror.example/")
    assert [group["replicas"] for group in autoscaler.groups().values()] == [2, 0, 0, 3]


def groups_keep_their_workers_when_others_are_added_removed_or_moved(scaling: Stack, autoscaler: Autoscaler) -> None:
    def others(settings: dict[str, Any]) -> None:
        training(settings)["workers"] = {
            "pool": "a100",
            "variants": [{"gpus": 8}, {"gpus": 2, "minReplicas": 1}, {"gpus": 1}, {"gpus": 5}],
        }

    scaling.edit(others)
    scaling.up()
    alive = {name: group["replicas"] for name, group in autoscaler.groups().items()}
    assert alive | {"a100-2gpu": 0} == {"a100-1gpu": 2, "a100-2gpu": 0, "a100-8gpu": 3, "a100-5gpu": 0}
    scaling.changes_nothing()


def an_update_during_scaling_is_refused_and_succeeds_afterwards(scaling: Stack, autoscaler: Autoscaler) -> None:
    scaling.edit(lambda settings: training(settings).update(labels={"cost-center": "teaching"}))
    with autoscaler.at_work("a100-1gpu"):
        output = scaling.pulumi("up", "--yes", "--skip-preview", fails=True).output
    assert "its autoscaler has just scaled a100-1gpu, and nothing was changed" in output
    assert "Traceback" not in output
    before = autoscaler.groups()
    scaling.up()
    assert {name: group["replicas"] for name, group in autoscaler.groups().items()} == {
        name: group["replicas"] for name, group in before.items()
    }
    assert autoscaler.groups()["a100-1gpu"]["scaleStrategy"] == before["a100-1gpu"]["scaleStrategy"]
    scaling.changes_nothing()


def test_an_update_keeps_what_the_autoscaler_has_set(scaling: Stack, autoscaler: Autoscaler, rays: Rays) -> None:
    scaling_is_not_a_difference(scaling, autoscaler)
    an_edit_of_another_setting_keeps_the_workers(scaling, autoscaler, rays)
    an_update_during_scaling_is_refused_and_succeeds_afterwards(scaling, autoscaler)


def scaling_between_the_last_read_and_the_update_is_restored(
    scaling: Stack, autoscaler: Autoscaler, rays: Rays, cluster: Rehearsal
) -> None:
    """That moment is too short to hit on purpose, so the test itself sends the update, with another field manager."""
    looked_at = rays.read(NAMESPACE, NAME)
    version, replicas = looked_at["metadata"]["resourceVersion"], autoscaler.groups()["a100-1gpu"]["replicas"]
    autoscaler.write("a100-1gpu", "replicas", replicas + 1)
    metadata = {"namespace": NAMESPACE, "name": NAME, "annotations": {DIGEST: "of-the-update"}}
    sent = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": looked_at["spec"]}
    Kubectl(cluster).does("apply", "--server-side", "--force-conflicts", "--filename=-", bodies=[sent])
    assert autoscaler.groups()["a100-1gpu"]["replicas"] == replicas
    assert restore(sent, version, ClientSession(cluster.client())) == ["a100-1gpu"]
    assert autoscaler.groups()["a100-1gpu"]["replicas"] == replicas + 1


def a_cluster_that_no_longer_scales_is_updated_although_its_autoscaler_wrote_last(
    scaling: Stack, autoscaler: Autoscaler
) -> None:
    def workers() -> set[int]:
        return {group["replicas"] for group in autoscaler.groups().values()}

    autoscaler.write("a100-1gpu", "replicas", 2)
    scaling.edit(lambda settings: training(settings).pop("idleTimeout"))
    scaling.edit(lambda settings: training(settings).update(autoscaling=False))
    scaling.up()
    assert workers() == {0}
    autoscaler.write("a100-1gpu", "replicas", 1)
    scaling.edit(lambda settings: training(settings).update(labels={"cost-center": "sales"}))
    scaling.up()
    assert workers() == {0}
    scaling.changes_nothing()


def an_update_does_not_wake_a_cluster_that_rests(scaling: Stack, rays: Rays) -> None:
    rays.patch(NAMESPACE, NAME, {"spec": {"suspend": True}}, field_manager=FIELD_MANAGER)
    scaling.changes_nothing(refreshed=True)
    scaling.edit(lambda settings: training(settings).update(labels={"cost-center": "archive"}))
    assert "it is suspended, and stays so: `ray-platform wake` wakes it" in scaling.up().output
    body = rays.read(NAMESPACE, NAME)
    assert body["metadata"]["labels"]["cost-center"] == "archive"
    assert rests_since(body)
    assert body["status"]["state"] == "suspended"
    scaling.changes_nothing(refreshed=True)


def a_cluster_that_the_stack_file_suspended_runs_again_without_the_key(scaling: Stack, rays: Rays) -> None:
    scaling.edit(lambda settings: training(settings).update(overrides={"suspend": True}))
    scaling.up()
    assert rays.read(NAMESPACE, NAME)["status"]["state"] == "suspended"
    scaling.edit(lambda settings: training(settings).pop("overrides"))
    scaling.up()
    assert rays.read(NAMESPACE, NAME)["status"]["state"] == "ready"
    scaling.changes_nothing(refreshed=True)


@pytest.mark.thorough
def test_other_edits_of_a_cluster_that_scales(
    scaling: Stack, autoscaler: Autoscaler, rays: Rays, cluster: Rehearsal
) -> None:
    an_edit_of_a_mirror_alone_keeps_the_workers_and_is_not_refused(scaling, autoscaler, rays)
    groups_keep_their_workers_when_others_are_added_removed_or_moved(scaling, autoscaler)
    scaling_between_the_last_read_and_the_update_is_restored(scaling, autoscaler, rays, cluster)
    a_cluster_that_no_longer_scales_is_updated_although_its_autoscaler_wrote_last(scaling, autoscaler)
    an_update_does_not_wake_a_cluster_that_rests(scaling, rays)
    a_cluster_that_the_stack_file_suspended_runs_again_without_the_key(scaling, rays)
