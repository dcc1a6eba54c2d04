"""Previews and updates of a live stack: edits of its file, and external changes."""

from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from testbed.harness import TAKE_OVER
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays, Stack, training
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def dev(stack_on_operator: MakeStack) -> Stack:
    """The dev stack. Each test needs `up`."""
    return stack_on_operator("dev")


@pytest.fixture
def up(dev: Stack) -> Stack:
    """The dev stack after `pulumi up`, with its original file."""
    return dev.settle()


def test_an_edit_of_the_stack_file_is_shown_by_the_preview_and_applied_by_up(up: Stack, rays: Rays) -> None:
    up.edit(lambda settings: training(settings).update(idleTimeout="10m"))
    shown = up.pulumi("preview", "--diff").output
    assert "idleTimeoutSeconds: 300 => 600" in shown
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    up.up()
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 600
    up.changes_nothing()
    assert up.outputs()["operator"] == {"version": "1.6.2", "namespace": "ray-system"}
    assert not [each["urn"] for each in up.resources() if "kuberay-operator" in each["urn"]]


def test_a_change_with_kubectl_is_shown_by_refresh_and_reverted_by_up(up: Stack, rays: Rays) -> None:
    rays.patch("team-a", "training", {"spec": {"autoscalerOptions": {"idleTimeoutSeconds": 7}}})
    assert "idleTimeoutSeconds: 300 => 7" in up.pulumi("refresh", "--yes", "--skip-preview", "--diff").output
    assert "idleTimeoutSeconds: 7 => 300" in up.pulumi("preview", "--diff", environment=TAKE_OVER).output
    up.up(environment=TAKE_OVER)
    assert rays.read("team-a", "training")["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] == 300
    up.up()
    up.changes_nothing()


def test_what_kubectl_has_edited_is_reverted_by_up_and_what_a_controller_has_is_a_conflict(
    up: Stack, cluster: Rehearsal, core: client.CoreV1Api
) -> None:
    kubectl = Kubectl(cluster)
    label = "pod-security.kubernetes.io/enforce"
    edit = ("label", "--overwrite", "namespace/team-a", f"{label}=baseline")

    def level() -> str:
        namespace: Any = core.read_namespace("team-a")
        return str(namespace.metadata.labels[label])

    def refreshed(**options: Any) -> str:
        return up.pulumi("up", "--yes", "--skip-preview", "--refresh", **options).output

    kubectl.does(*edit)
    refreshed()
    assert level() == "restricted"
    kubectl.does(*edit, "--field-manager=their-controller")
    refused = refreshed(fails=True)
    assert 'conflict with "their-controller"' in refused
    assert label in refused
    refreshed(environment=TAKE_OVER)
    assert level() == "restricted"


def test_a_wrong_setting_is_refused_with_one_message_before_anything_changes(up: Stack) -> None:
    up.edit(lambda settings: training(settings).update(idleTimeout="soon"))
    output = up.up(fails=True).output
    shown = output.partition("Diagnostics:")[2]
    assert shown.count("error:") == 1
    assert "ray-platform:tenants[0].clusters[0].idleTimeout: 'soon' is not a duration such as 90s" in shown
    assert "Traceback" not in output


def test_the_reason_of_a_cluster_that_does_not_start_is_reported_within_its_time_limit(up: Stack) -> None:
    def add_a_cluster_for_nodes_that_do_not_exist(settings: dict[str, Any]) -> None:
        head = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
        settings["tenants"][0]["clusters"].append(
            {**training(settings), "name": "giant", "head": head, "readyTimeout": "10s"}
        )

    up.edit(add_a_cluster_for_nodes_that_do_not_exist)
    shown = up.up(fails=True).output
    assert "RayCluster team-a/giant is not ready" in shown
    assert "didn't match Pod's node affinity/selector" in shown
