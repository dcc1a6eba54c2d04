"""What a RayService looks like to KubeRay, and what its settings may not be together."""

from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from components.ray_cluster.manifests import ray_cluster
from components.ray_service.manifests import connection, ray_service, ray_service_objects
from components.ray_service.rules import ValidRayService
from components.ray_service.settings import SERVICE_LABEL, RayServiceSettings
from kuberay import OperatorContext, validate

CLUSTER = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "labels": {"cost-center": "research"}}
CONFIG = {
    "applications": [
        {
            "name": "chat",
            "route_prefix": "/",
            "import_path": "chat:app",
            "deployments": [{"name": "C", "num_replicas": 2}],
        }
    ]
}
STEPS = {"gatewayClassName": "istio", "stepSizePercent": 10, "intervalSeconds": 30}
INCREMENTAL = {"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": STEPS}


def service(**settings: Any) -> RayServiceSettings:
    entry = {"name": "chat", "serveConfigV2": CONFIG, "cluster": CLUSTER, **settings}
    return TypeAdapter(ValidRayService).validate_python(entry, by_alias=True, by_name=False)


def rendered(**settings: Any) -> dict[str, Any]:
    made = service(**settings)
    return ray_service(made, ray_cluster(made.own_cluster, ()))


def test_kuberay_accepts_it() -> None:
    assert validate(rendered(rayClusterDeletionDelaySeconds=0, excludeHeadPodFromServeSvc=True), OPERATOR) == []


OPERATOR = OperatorContext("1.6.2")


@pytest.mark.parametrize(("gate", "rules"), [(True, []), (False, ["incremental-feature-gate"])])
def test_an_incremental_upgrade_needs_the_operators_gate(gate: bool, rules: list[str]) -> None:
    operator = OperatorContext("1.6.2", None, {"RayServiceIncrementalUpgrade": gate})
    assert [each.rule for each in validate(rendered(upgradeStrategy=INCREMENTAL), operator)] == rules


def test_the_serve_config_is_text_with_what_is_set_alone() -> None:
    assert yaml.safe_load(rendered()["spec"]["serveConfigV2"]) == CONFIG


def test_it_has_no_empty_list_which_kuberay_would_drop() -> None:
    assert "workerGroupSpecs" not in rendered()["spec"]["rayClusterConfig"]


def test_its_clusters_and_their_pods_have_the_services_label() -> None:
    body = rendered()
    assert body["metadata"]["labels"] == {"cost-center": "research", SERVICE_LABEL: "chat"}
    head = body["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]
    assert head["metadata"]["labels"][SERVICE_LABEL] == "chat"


@pytest.mark.parametrize(
    ("settings", "drain"),
    [
        ({}, "60s"),
        ({"graceful_shutdown_timeout_s": 90.5}, "131s"),
        ({"rayVersion": "2.57.0"}, "0s"),
        ({"rayVersion": "2.56.0"}, None),
        ({"drainTimeout": "5m"}, "5m"),
    ],
)
def test_its_workers_drain_until_serve_has_moved_their_requests(settings: dict[str, Any], drain: str | None) -> None:
    """Serve heeds a drain from Ray 2.60 on; before, a replica would stay until the drain ends, and be killed."""
    deployment = {"name": "C", **{key: value for key, value in settings.items() if "_" in key}}
    cluster = {**CLUSTER, **{key: value for key, value in settings.items() if "_" not in key}}
    cluster["image"] = f"rayproject/ray:{cluster['rayVersion']}"
    config = {
        "applications": [{"name": "chat", "route_prefix": "/", "import_path": "c:a", "deployments": [deployment]}]
    }
    assert service(serveConfigV2=config, cluster=cluster).own_cluster.drain_timeout == drain


def test_neither_of_its_two_heads_during_an_update_is_evicted() -> None:
    found = {each.name: each for each in ray_service_objects(service(), {})}
    budget = found["head-disruption-budget"].body["spec"]
    assert budget["minAvailable"] == 2
    assert budget["selector"]["matchLabels"] == {SERVICE_LABEL: "chat", "ray.io/node-type": "head"}


def test_its_endpoint_is_serves_service_or_kuberays_gateway() -> None:
    assert connection(service(), "team-a", 8000)["endpoint"] == "http://chat-serve-svc.team-a.svc:8000"
    assert connection(service(upgradeStrategy=INCREMENTAL), "team-a", 8000)["gateway"] == "chat-gateway"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"serveConfigV2": {**CONFIG, "http_options": {"host": "127.0.0.1"}}}, "nobody outside of the pod reaches"),
        (
            {"serveConfigV2": {**CONFIG, "proxy_location": "HeadOnly"}, "excludeHeadPodFromServeSvc": True},
            "only the head has a proxy",
        ),
        ({"upgradeStrategy": {**INCREMENTAL, "type": "NewCluster"}}, "KubeRay ignores it with NewCluster"),
    ],
)
def test_conflicts_between_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        service(**settings)
