"""A RayCluster with a new name or namespace is ready before the earlier one is deleted."""

from typing import Any

import pytest
from kubernetes import client

from testbed.client_session import ClientSession
from testbed.platform_stack import Rays, Stack, training
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

OLD, RENAMED, MOVED = ("team-a", "training"), ("team-a", "tuning"), ("team-a-new", "tuning")


@pytest.fixture(scope="module")
def stack(stack_on_operator: MakeStack) -> Stack:
    """A stack with one RayCluster, after `pulumi up`, whose tenant may leave its namespace."""
    made = stack_on_operator("renamed")
    made.edit(lambda settings: settings["tenants"][0].update(allowDelete=True))
    made.up()
    return made


def creates_before_it_deletes(stack: Stack, rays: Rays, old: tuple[str, str], new: tuple[str, str]) -> bool:
    """Whether `pulumi up` deletes the old RayCluster, and does so after the new one was ready, in the order in which
    the API server wrote their changes."""
    before = rays.version()
    stack.up()
    ready = False
    for kind, body in rays.changes(before):
        name = (body["metadata"]["namespace"], body["metadata"]["name"])
        ready = ready or (name == new and (body.get("status") or {}).get("state") == "ready")
        if name == old and (kind == "DELETED" or "deletionTimestamp" in body["metadata"]):
            return ready
    return False


def a_renamed_cluster_is_created_before_the_old_one_is_deleted(stack: Stack, rays: Rays) -> None:
    stack.edit(lambda settings: training(settings).update(name=RENAMED[1]))
    assert creates_before_it_deletes(stack, rays, OLD, RENAMED)
    assert not rays.exists(*OLD)


def the_old_cluster_stays_if_the_new_one_does_not_start(stack: Stack, rays: Rays) -> None:
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


def a_moved_cluster_is_created_before_the_old_one_is_deleted_with_its_namespace(
    stack: Stack, rays: Rays, core: client.CoreV1Api
) -> None:
    stack.edit(lambda settings: settings["tenants"][0].update(namespace=MOVED[0]))
    assert creates_before_it_deletes(stack, rays, RENAMED, MOVED)
    assert ClientSession(core.api_client).get("v1", "namespaces", None, RENAMED[0]) is None
    stack.changes_nothing()


def test_a_cluster_is_renamed_and_moved_with_its_tenant(stack: Stack, rays: Rays, core: client.CoreV1Api) -> None:
    a_renamed_cluster_is_created_before_the_old_one_is_deleted(stack, rays)
    the_old_cluster_stays_if_the_new_one_does_not_start(stack, rays)
    a_moved_cluster_is_created_before_the_old_one_is_deleted_with_its_namespace(stack, rays, core)
