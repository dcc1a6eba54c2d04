"""The program itself, on a control plane with the real operator."""

import pytest
from kubernetes import client, config

from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, Stack, existing
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def up(stack: MakeStack) -> Stack:
    """The dev stack after `pulumi up`."""
    dev = stack("dev")
    dev.up()
    return dev


def the_cluster_is_ready_when_up_ends(up: Stack, rays: Rays) -> None:
    status = rays.read("team-a", "training")["status"]
    assert status["state"] == "ready"
    assert {each["type"]: each["status"] for each in status["conditions"]}["HeadPodReady"] == "True"
    made = up.outputs()["clusters"]["team-a/training"]
    assert made["state"] == "ready"
    assert made["status"]["head"]["service"] == "training-head-svc"
    head, worker = made["status"]["head"], made["status"]["worker"]
    assert (head["replicas"], head["updatedReplicas"], head["unavailableReplicas"]) == (1, 1, 0)
    assert (worker["desired"], worker["replicas"], worker["max"]) == (0, 0, 10)
    assert {each["type"] for each in made["status"]["conditions"]} >= {"HeadPodReady", "RayClusterProvisioned"}
    assert made["largestGpus"] == 8
    assert [group["gpus"] for group in made["workerGroups"]] == [1, 2, 4, 8]
    assert made["dashboardUrl"] == "http://training-head-svc.team-a.svc:8265"


def the_operator_has_only_the_rights_of_the_stack(up: Stack, cluster: Rehearsal) -> None:
    """It runs on the host and must not use the host's rights, so that a missing permission is noticed."""
    kubeconfig = cluster.run / "host-pods" / "ray-system_kuberay-operator" / "kubeconfig"
    api = config.new_client_from_config(str(kubeconfig))
    review = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    user = api.sanitize_for_serialization(review)["status"]["userInfo"]["username"]
    assert user == "system:serviceaccount:ray-system:kuberay-operator"
    client.CoreV1Api(api).list_pod_for_all_namespaces()
    with pytest.raises(client.ApiException, match="Forbidden"):
        client.CoreV1Api(api).list_node()


def a_second_up_and_a_refresh_change_nothing(up: Stack) -> None:
    unchanged = up.changes_nothing().output
    refreshed = up.pulumi("refresh", "--yes", "--skip-preview").output
    assert "outputs:" not in unchanged + up.changes_nothing().output
    # Pulumi warns of a plugin that is older than what the program asks for.
    assert "expected to have version" not in unchanged
    assert "older version" not in refreshed


def up_creates_a_deleted_operator_again(up: Stack, cluster: Rehearsal) -> None:
    apps = client.AppsV1Api(cluster.client())
    apps.delete_namespaced_deployment("kuberay-operator", "ray-system")
    assert "ray-system/kuberay-operator is missing: `pulumi up` creates it again" in up.up().output
    status = apps.read_namespaced_deployment("kuberay-operator", "ray-system").status
    assert status is not None
    assert status.available_replicas == 1
    up.changes_nothing(refreshed=True)


def the_definitions_are_kept_while_an_external_ray_cluster_exists(up: Stack, rays: Rays, cluster: Rehearsal) -> None:
    spec = rays.read("team-a", "training")["spec"]
    rays.create(
        "default",
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": "foreign"},
            "spec": {"rayVersion": spec["rayVersion"], "headGroupSpec": spec["headGroupSpec"]},
        },
    )
    refused = up.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "default/foreign" in refused
    assert "definition rayclusters.ray.io" in existing(cluster)
    assert rays.exists("default", "foreign")
    rays.delete("default", "foreign")


def destroy_leaves_nothing(up: Stack, cluster: Rehearsal) -> None:
    up.destroy()
    assert up.resources() == []
    left = existing(cluster)
    assert not {name for name in left if "ray" in name}
    assert "namespace team-a" not in left


def test_the_platform_from_nothing_to_destroy(up: Stack, rays: Rays, cluster: Rehearsal) -> None:
    the_cluster_is_ready_when_up_ends(up, rays)
    the_operator_has_only_the_rights_of_the_stack(up, cluster)
    a_second_up_and_a_refresh_change_nothing(up)
    up_creates_a_deleted_operator_again(up, cluster)
    the_definitions_are_kept_while_an_external_ray_cluster_exists(up, rays, cluster)
    destroy_leaves_nothing(up, cluster)
