"""An operator of another stack, and one that watches only some namespaces."""

import pytest
from kubernetes import client, config

from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, training
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(900)]


def test_an_existing_operator_that_does_not_exist_is_missed(stack: MakeStack) -> None:
    """With one: all tests on the fixture `operator`."""
    team = stack("team")
    team.edit(lambda settings: settings.update(operator={"install": "existing"}))
    refused = team.pulumi("preview", fails=True).output
    assert "there is no Deployment kuberay-operator with a version in namespace 'ray-system'" in refused
    assert "Traceback" not in refused


def test_an_operator_that_watches_one_namespace_serves_only_that_one(
    stack: MakeStack, rays: Rays, cluster: Rehearsal
) -> None:
    narrow = stack("narrow")
    narrow.edit(lambda settings: settings["operator"].update(watchNamespaces=["team-a"]))
    narrow.up()
    own = rays.read("team-a", "training")
    assert own["status"]["state"] == "ready"

    foreign = {**own, "metadata": {"name": "foreign"}, "spec": {"headGroupSpec": own["spec"]["headGroupSpec"]}}
    foreign.pop("status")
    rays.create("default", foreign)
    narrow.edit(lambda settings: settings["tenants"][0]["clusters"].append({**training(settings), "name": "later"}))
    narrow.up()
    assert rays.read("team-a", "later")["status"]["state"] == "ready"
    assert "status" not in rays.read("default", "foreign")

    kubeconfig = cluster.run / "host-pods" / "ray-system_kuberay-operator" / "kubeconfig"
    pods = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
    pods.list_namespaced_pod("team-a")
    with pytest.raises(client.ApiException, match="Forbidden"):
        pods.list_namespaced_pod("default")
    rays.delete("default", "foreign")
    narrow.destroy()
