"""An operator of another stack, and one that watches only some namespaces."""

from typing import Any

import pytest
from kubernetes import client, config

from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, existing, training
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(900)]


def only_the_operator(settings: dict[str, Any]) -> None:
    settings["tenants"] = []


def test_a_stack_uses_the_existing_operator(stack: MakeStack, rays: Rays, cluster: Rehearsal) -> None:
    """`install: existing`: refused without an operator; an existing one is not changed."""
    admin, team = stack("admin"), stack("team")
    team.edit(lambda settings: settings.update(operator={"install": "existing"}))
    refused = team.pulumi("preview", fails=True).output
    assert "there is no Deployment kuberay-operator with a version in namespace 'ray-system'" in refused
    assert "Traceback" not in refused

    admin.edit(only_the_operator)
    admin.up()
    before = existing(cluster)
    team.up()
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
    assert team.outputs()["operator"] == {"version": "1.6.2", "namespace": "ray-system"}
    assert not [each["urn"] for each in team.resources() if "kuberay-operator" in each["urn"]]
    team.changes_nothing()

    team.destroy()
    assert existing(cluster) - {"namespace team-a"} == before
    admin.changes_nothing()
    admin.destroy()


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
