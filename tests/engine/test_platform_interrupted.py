"""The program itself, killed during its first update, and again during the recovery."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, existing
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(1200)]


def uids(cluster: Rehearsal) -> dict[str, str]:
    """The uids of the stack's objects, by kind and name."""
    api = cluster.client()
    core = client.CoreV1Api(api)
    lists: dict[str, Callable[[], Any]] = {
        "definition": client.ApiextensionsV1Api(api).list_custom_resource_definition,
        "binding": client.RbacAuthorizationV1Api(api).list_cluster_role_binding,
        "namespace": core.list_namespace,
        "account": core.list_service_account_for_all_namespaces,
    }
    found = [(kind, item.metadata) for kind, every in lists.items() for item in every().items]
    return {f"{kind} {metadata.namespace} {metadata.name}": metadata.uid for kind, metadata in found}


def test_one_command_recovers_an_update_that_is_killed_twice(stack: MakeStack, rays: Rays, cluster: Rehearsal) -> None:
    """The update is killed when the first definition exists, the recovery when the RayCluster exists. No existing
    object is recreated."""
    dev = stack("dev")
    dev.killed(lambda: "definition rayclusters.ray.io" in existing(cluster))
    before = uids(cluster)
    dev.killed(lambda: rays.exists("team-a", "training"), dev.start_recovery())
    now = uids(cluster)
    assert {name: now.get(name) for name in before} == before, "recreated"
    before = now
    cluster_before = rays.read("team-a", "training")["metadata"]["uid"]
    dev.recover()
    dev.changes_nothing()
    now = uids(cluster)
    assert {name: now.get(name) for name in before} == before, "recreated"
    trained = rays.read("team-a", "training")
    assert trained["metadata"]["uid"] == cluster_before
    assert trained["status"]["state"] == "ready"
    dev.edit(lambda settings: settings["tenants"][0]["clusters"][0].update(idleTimeout="7m"))
    dev.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 420
