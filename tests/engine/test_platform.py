"""The program itself, on a control plane with the real operator: what the people who run it rely on."""

from typing import Any

import pytest
from kubernetes import client, config

from local.rehearsal import Rehearsal
from tests.engine.conftest import MakeStack
from tests.engine.harness import TAKE_OVER
from tests.engine.platform_stack import Rays, Stack, existing, training

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def dev(stack: MakeStack) -> Stack:
    """The dev stack. The tests of this file are one day in its life, in their order; none can do without `up`."""
    return stack("dev")


@pytest.fixture
def up(dev: Stack) -> Stack:
    """The dev stack, up, with the settings of its file as it is in the checkout."""
    dev.reset_file()
    dev.edit(lambda settings: None)
    dev.settle()
    return dev


def test_the_cluster_is_ready_when_up_ends(up: Stack, rays: Rays) -> None:
    status = rays.read("team-a", "training")["status"]
    assert status["state"] == "ready"
    assert {each["type"]: each["status"] for each in status["conditions"]}["HeadPodReady"] == "True"
    made = up.outputs()["clusters"]["team-a/training"]
    assert made["state"] == "ready"
    assert made["status"]["head"]["service"] == "training-head-svc"
    assert made["status"]["workers"] == {"desired": 0, "available": 0, "ready": 0, "min": 0, "max": 10}
    assert {each["type"] for each in made["status"]["conditions"]} >= {"HeadPodReady", "RayClusterProvisioned"}
    assert made["greatestGpus"] == 8
    assert [group["gpus"] for group in made["workerGroups"]] == [1, 2, 4, 8]
    assert made["dashboardUrl"] == "http://training-head-svc.team-a.svc:8265"


def test_the_operator_has_the_rights_that_the_stack_gave_it_and_no_other(up: Stack, cluster: Rehearsal) -> None:
    """It runs on the host, so that it could have had the host's: a permission that the stack forgets has to show."""
    kubeconfig = cluster.run / "host-pods" / "ray-system_kuberay-operator" / "kubeconfig"
    api = config.new_client_from_config(str(kubeconfig))
    review = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    user = api.sanitize_for_serialization(review)["status"]["userInfo"]["username"]
    assert user == "system:serviceaccount:ray-system:kuberay-operator"
    client.CoreV1Api(api).list_pod_for_all_namespaces()
    with pytest.raises(client.ApiException, match="Forbidden"):
        client.CoreV1Api(api).list_node()


def test_a_second_up_and_a_refresh_change_nothing(up: Stack) -> None:
    up.changes_nothing()
    up.pulumi("refresh", "--yes", "--skip-preview")
    up.changes_nothing()


def test_an_edit_of_the_stack_file_is_shown_by_the_preview_and_made_by_up(up: Stack, rays: Rays) -> None:
    up.edit(lambda settings: training(settings).update(idleTimeout="10m"))
    shown = up.pulumi("preview", "--diff").output
    assert "idleTimeoutSeconds: 300 => 600" in shown
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    up.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 600
    up.changes_nothing()


def test_a_change_with_kubectl_is_shown_by_refresh_and_undone_by_up(up: Stack, rays: Rays) -> None:
    rays.patch("team-a", "training", {"spec": {"autoscalerOptions": {"idleTimeoutSeconds": 7}}})
    assert "idleTimeoutSeconds: 300 => 7" in up.pulumi("refresh", "--preview-only", "--diff").output
    up.pulumi("refresh", "--yes", "--skip-preview")
    assert "idleTimeoutSeconds: 7 => 300" in up.pulumi("preview", "--diff", environment=TAKE_OVER).output
    up.up(environment=TAKE_OVER)
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    up.up()
    up.changes_nothing()


def test_a_wrong_setting_is_refused_with_one_message_before_anything_changes(up: Stack) -> None:
    up.edit(lambda settings: training(settings).update(idleTimeout="soon"))
    output = up.up(fails=True).output
    shown = output.partition("Diagnostics:")[2]
    assert shown.count("error:") == 1
    assert "ray-platform:tenants[0].clusters[0].idleTimeout: 'soon' is not a duration such as 90s" in shown
    assert "Traceback" not in output


def test_a_cluster_that_cannot_come_up_says_why_within_its_time(up: Stack) -> None:
    def add_one_that_is_too_great(settings: dict[str, Any]) -> None:
        settings["tenants"][0]["clusters"].append(
            {**training(settings), "name": "giant", "head": {"cpu": "1000"}, "readyTimeout": "10s"}
        )

    up.edit(add_one_that_is_too_great)
    shown = up.up(fails=True).output
    assert "RayCluster team-a/giant is not ready" in shown
    assert "Insufficient cpu" in shown


def test_the_definitions_are_kept_while_somebody_else_has_a_ray_cluster(
    up: Stack, rays: Rays, cluster: Rehearsal
) -> None:
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
    assert rays.there("default", "foreign")
    rays.delete("default", "foreign")


def test_destroy_leaves_nothing(up: Stack, cluster: Rehearsal) -> None:
    up.destroy()
    assert up.resources() == []
    left = existing(cluster)
    assert not {name for name in left if "ray" in name}
    assert "namespace team-a" not in left
