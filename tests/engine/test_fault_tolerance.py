"""A RayCluster whose GCS is stored in Redis: its objects, its keys, and its deletion."""

import time
from typing import Any

import pytest

from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, Stack, existing, training
from tests.engine.conftest import MakeStack

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough,
    pytest.mark.shared_cluster,
    pytest.mark.timeout(1200),
]

NAMESPACE, NAME = "team-a", "training"

GIVES_UP_AFTER = 20
"""Seconds after which KubeRay deletes the RayCluster even if its keys were not removed."""


def kept_in_redis(settings: dict[str, Any]) -> None:
    settings["redis"] = {"namespace": "kept-tables"}
    settings["tenants"][0]["quota"] = {"cpu": 100, "memory": "1000Gi", "pods": 20}
    training(settings)["faultTolerance"] = True
    training(settings)["autoscaling"] = False
    del training(settings)["idleTimeout"]
    training(settings)["annotations"] = {"ray.io/gcs-ft-deletion-timeout": str(GIVES_UP_AFTER)}


@pytest.fixture(scope="module")
def kept(stack_on_operator: MakeStack) -> Stack:
    """A stack with a fault tolerant RayCluster, after `pulumi up`."""
    made = stack_on_operator("kept")
    made.edit(kept_in_redis)
    made.up()
    return made


def options(rays: Rays) -> dict[str, Any]:
    found: dict[str, Any] = rays.read(NAMESPACE, NAME)["spec"]["gcsFaultToleranceOptions"]
    return found


def the_head_has_a_gateway_which_ray_uses(kept: Stack, core: Any, rays: Rays) -> None:
    [head] = core.list_namespaced_pod(NAMESPACE, label_selector="ray.io/node-type=head").items
    assert [each.name for each in head.spec.init_containers if each.restart_policy == "Always"] == ["redis-gateway"]
    env = {each.name: each for each in head.spec.containers[0].env}
    assert env["RAY_REDIS_ADDRESS"].value == options(rays)["redisAddress"] == "redis://127.0.0.1:6399"
    assert env["REDIS_PASSWORD"].value_from.secret_key_ref.name == "ray-redis"
    assert rays.read(NAMESPACE, NAME)["metadata"]["finalizers"]


def the_storage_namespace_is_that_of_tenant_and_cluster_and_stays(kept: Stack, rays: Rays) -> None:
    named = options(rays)["externalStorageNamespace"]
    assert named.startswith(f"{NAMESPACE}.{NAME}.")
    assert kept.outputs()["clusters"][f"{NAMESPACE}/{NAME}"]["storageNamespace"] == named
    kept.changes_nothing()


def it_is_edited_although_kuberay_has_written_the_list_of_worker_groups(kept: Stack, rays: Rays) -> None:
    """That is when it adds its finalizer."""
    before = rays.read(NAMESPACE, NAME)
    owners = [each["manager"] for each in before["metadata"]["managedFields"] if "f:workerGroupSpecs" in str(each)]
    assert "kuberay-operator" in owners
    kept.edit(lambda settings: training(settings).update(labels={"cost-center": "research"}))
    kept.up()
    after = rays.read(NAMESPACE, NAME)["metadata"]
    assert (after["uid"], after["labels"]["cost-center"]) == (before["metadata"]["uid"], "research")


def a_cluster_that_replaces_a_deleted_one_has_none_of_its_keys(kept: Stack, core: Any, rays: Rays) -> None:
    before = options(rays)["externalStorageNamespace"]
    rays.delete(NAMESPACE, NAME)
    deadline = time.monotonic() + 300
    while rays.exists(NAMESPACE, NAME):
        assert time.monotonic() < deadline, "the RayCluster still exists after its keys were removed"
        time.sleep(1)
    assert core.list_namespaced_event(NAMESPACE, field_selector="reason=ForceDeletedStuckCluster").items == []
    kept.pulumi("refresh", "--yes", "--skip-preview")
    kept.up()
    assert options(rays)["externalStorageNamespace"] != before
    kept.changes_nothing()


def without_fault_tolerance_the_cluster_is_recreated_and_can_be_deleted(kept: Stack, rays: Rays) -> None:
    """KubeRay never removes its finalizer from a RayCluster that has lost its options."""
    before = rays.read(NAMESPACE, NAME)["metadata"]["uid"]
    kept.edit(lambda settings: training(settings).update(faultTolerance=False))
    kept.up()
    found = rays.read(NAMESPACE, NAME)
    assert found["metadata"]["uid"] != before
    assert "finalizers" not in found["metadata"]
    assert "gcsFaultToleranceOptions" not in found["spec"]


def a_running_cluster_that_must_be_kept_is_edited_in_place(kept: Stack, rays: Rays) -> None:
    before = rays.read(NAMESPACE, NAME)["metadata"]["uid"]
    kept.edit(lambda settings: training(settings).update(faultTolerance=True))
    kept.up()
    assert rays.read(NAMESPACE, NAME)["metadata"]["uid"] == before
    assert options(rays)


def destroy_ends_although_keys_remain_and_reports_them(kept: Stack, cluster: Rehearsal, core: Any, rays: Rays) -> None:
    """An external quota prevents KubeRay from cleaning up, like a Redis that is down."""
    named = options(rays)["externalStorageNamespace"]
    no_jobs = {"metadata": {"name": "no-jobs"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    core.create_namespaced_resource_quota(NAMESPACE, no_jobs)
    result = kept.pulumi("destroy", "--yes", "--skip-preview")
    assert f"its keys may remain in Redis: RAY{named}@*" in result.output
    assert kept.resources() == []
    assert f"namespace {NAMESPACE}" not in existing(cluster)


def test_a_ray_cluster_keeps_its_tables_in_redis_until_it_is_deleted(
    kept: Stack, core: Any, rays: Rays, cluster: Rehearsal
) -> None:
    the_head_has_a_gateway_which_ray_uses(kept, core, rays)
    the_storage_namespace_is_that_of_tenant_and_cluster_and_stays(kept, rays)
    it_is_edited_although_kuberay_has_written_the_list_of_worker_groups(kept, rays)
    a_cluster_that_replaces_a_deleted_one_has_none_of_its_keys(kept, core, rays)
    without_fault_tolerance_the_cluster_is_recreated_and_can_be_deleted(kept, rays)
    a_running_cluster_that_must_be_kept_is_edited_in_place(kept, rays)
    destroy_ends_although_keys_remain_and_reports_them(kept, cluster, core, rays)
