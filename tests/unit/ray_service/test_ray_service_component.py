"""What a tenant relies on when a RayService is provisioned."""

from typing import Any

import pulumi

from components.ray_cluster.manifests import ray_cluster
from components.ray_service.component import RayService, RayServiceArgs
from components.ray_service.manifests import ray_service, ray_service_objects
from components.ray_service.settings import RayServiceSettings
from testbed.recorder import Recorder, record


def provisioned(**cluster: Any) -> Recorder:
    template = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **cluster}
    config = {"applications": [{"import_path": "chat:app"}]}
    settings = RayServiceSettings.model_validate({"name": "chat", "serveConfigV2": config, "cluster": template})

    def program() -> None:
        body = ray_service(settings, ray_cluster(settings.own_cluster, ()))
        operator = pulumi.ComponentResource("ray-platform:index:KubeRayOperator", "operator")
        pulumi.CustomResource("t:t:Guard", "guard", {}, pulumi.ResourceOptions(parent=operator))
        after = pulumi.ResourceOptions(depends_on=[operator])
        RayService("team-a/chat", RayServiceArgs(settings, list(ray_service_objects(settings, body)), "team-a"), after)

    return record(program)


def test_it_is_one_ray_service_under_the_component_after_the_operator() -> None:
    recorder = provisioned()
    made = recorder.registered["team-a/chat-ray-service"]
    assert (made.type, made.parent) == ("kubernetes:ray.io/v1:RayService", "team-a/chat")
    assert made.inputs["metadata"]["namespace"] == "team-a"
    assert recorder.made_before("guard", "team-a/chat-ray-service")


def test_every_edit_is_applied_in_place() -> None:
    made = provisioned().registered["team-a/chat-ray-service"]
    assert not made.replaced_on
    assert not made.ignored


def test_the_heads_of_its_clusters_are_not_evicted_unless_configured() -> None:
    assert "team-a/chat-head-disruption-budget" in provisioned().registered
    assert "team-a/chat-head-disruption-budget" not in provisioned(head={"evictable": True}).registered
