"""A RayCluster with another name, or in another namespace, is ready before the one that it follows goes."""

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
    """A stack with one RayCluster, up, whose tenant may leave its namespace. The tests are one day in its life, in
    their order."""
    made = stack_on_operator("renamed")
    made.edit(lambda settings: settings["tenants"][0].update(allowDelete=True))
    made.up()
    yield made
    made.destroy()


@contextmanager
def watched(rays: Rays, old: tuple[str, str], new: tuple[str, str]) -> Iterator[list[tuple[bool, bool]]]:
    """Again and again, whether the old one is there, and whether the new one is ready."""
    seen: list[tuple[bool, bool]] = []
    ending = threading.Event()

    def ready() -> bool:
        return rays.there(*new) and (rays.read(*new).get("status") or {}).get("state") == "ready"

    def look() -> None:
        while not ending.wait(LOOK_SECONDS):
            # The new one first: what is ready before the old one is looked at was ready when that was gone.
            is_ready = ready()
            seen.append((rays.there(*old), is_ready))

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield seen
    finally:
        ending.set()
        watch.join()


def follows(seen: list[tuple[bool, bool]]) -> bool:
    """Whether there was a moment with both, and none with neither."""
    return (True, True) in seen and (False, False) not in seen


def test_one_that_is_renamed_is_made_beside_the_old_one_which_goes_when_it_is_ready(stack: Stack, rays: Rays) -> None:
    stack.edit(lambda settings: training(settings).update(name=RENAMED[1]))
    with watched(rays, OLD, RENAMED) as seen:
        stack.up()
    assert follows(seen)
    assert not rays.there(*OLD)
    stack.changes_nothing()


def test_the_old_one_stays_where_the_new_one_does_not_come_up(stack: Stack, rays: Rays) -> None:
    def too_large(settings: dict[str, Any]) -> None:
        training(settings).update(name="large", head={"cpu": "1000"}, readyTimeout="5s")

    said_before = stack.file.read_text()
    stack.edit(too_large)
    assert "RayCluster team-a/large is not ready after 5 s" in stack.up(fails=True).output
    assert rays.read(*RENAMED)["status"]["state"] == "ready"
    stack.file.write_text(said_before)
    stack.edit(lambda _settings: None)
    stack.up()
    assert rays.read(*RENAMED)["status"]["state"] == "ready"
    assert not rays.there("team-a", "large")


def test_one_that_moves_is_made_in_the_other_namespace_and_the_old_one_goes_with_its_namespace(
    stack: Stack, rays: Rays, core: client.CoreV1Api
) -> None:
    stack.edit(lambda settings: settings["tenants"][0].update(namespace=MOVED[0]))
    with watched(rays, RENAMED, MOVED) as seen:
        stack.up()
    assert follows(seen)
    assert read(core.read_namespace, RENAMED[0]) is None
    stack.changes_nothing()
