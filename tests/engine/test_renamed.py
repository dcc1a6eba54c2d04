"""A RayCluster with a new name or namespace is ready before the earlier one is deleted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes import client

from components.cluster import read
from testbed.platform_stack import Rays, Stack, training
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(900)]

OLD, RENAMED, MOVED = ("team-a", "training"), ("team-a", "tuning"), ("team-a-new", "tuning")

LOOK_SECONDS = 0.1


@pytest.fixture(scope="module")
def stack(stack_on_operator: MakeStack) -> Iterator[Stack]:
    """A stack with one RayCluster, after `pulumi up`, whose tenant may leave its namespace. The tests use it in their
    order."""
    made = stack_on_operator("renamed")
    made.edit(lambda settings: settings["tenants"][0].update(allowDelete=True))
    made.up()
    yield made
    made.destroy()


@contextmanager
def watched(rays: Rays, old: tuple[str, str], new: tuple[str, str]) -> Iterator[list[tuple[bool, bool]]]:
    """Records repeatedly whether the old one exists, and whether the new one is ready."""
    seen: list[tuple[bool, bool]] = []
    ending = threading.Event()

    def ready() -> bool:
        return rays.exists(*new) and (rays.read(*new).get("status") or {}).get("state") == "ready"

    def look() -> None:
        while not ending.wait(LOOK_SECONDS):
            # The new one is read first: if it is ready and the old one is missing afterwards, it was ready in time.
            is_ready = ready()
            seen.append((rays.exists(*old), is_ready))

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield seen
    finally:
        ending.set()
        watch.join()


def follows(seen: list[tuple[bool, bool]]) -> bool:
    """Whether there was a moment with both, and none without either."""
    return (True, True) in seen and (False, False) not in seen


def test_a_renamed_cluster_is_created_before_the_old_one_is_deleted(stack: Stack, rays: Rays) -> None:
    stack.edit(lambda settings: training(settings).update(name=RENAMED[1]))
    with watched(rays, OLD, RENAMED) as seen:
        stack.up()
    assert follows(seen)
    assert not rays.exists(*OLD)
    stack.changes_nothing()


def test_the_old_cluster_stays_if_the_new_one_does_not_start(stack: Stack, rays: Rays) -> None:
    def never_ready(settings: dict[str, Any]) -> None:
        head = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
        training(settings).update(name="large", head=head, readyTimeout="5s")

    original = stack.file.read_text()
    stack.edit(never_ready)
    assert "RayCluster team-a/large is not ready after 5 s" in stack.up(fails=True).output
    assert rays.read(*RENAMED)["status"]["state"] == "ready"
    stack.file.write_text(original)
    stack.edit(lambda _settings: None)
    stack.up()
    assert rays.read(*RENAMED)["status"]["state"] == "ready"
    assert not rays.exists("team-a", "large")


def test_a_moved_cluster_is_created_before_the_old_one_is_deleted_with_its_namespace(
    stack: Stack, rays: Rays, core: client.CoreV1Api
) -> None:
    stack.edit(lambda settings: settings["tenants"][0].update(namespace=MOVED[0]))
    with watched(rays, RENAMED, MOVED) as seen:
        stack.up()
    assert follows(seen)
    assert read(core.read_namespace, RENAMED[0]) is None
    stack.changes_nothing()
