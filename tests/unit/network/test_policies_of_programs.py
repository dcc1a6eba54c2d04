"""The NetworkPolicies of the namespaces of the operator and of schedulers."""

from typing import Any

import pytest

from stacks.load import parse
from stacks.objects.network import operator_policies, scheduler_policies


def tcp(*ports: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def test_the_operators_namespace_has_policies() -> None:
    deny, operator = operator_policies(parse({"operator": {"watchNamespaces": ["a"]}}))
    assert {body["metadata"]["namespace"] for body in (deny, operator)} == {"ray-system"}
    assert deny["spec"]["podSelector"] == {}
    assert "ingress" not in operator["spec"]
    names = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}
    heads = {
        "namespaceSelector": {"matchExpressions": [names]},
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
    }
    assert {"to": [heads], "ports": tcp(8265, 8000)} in operator["spec"]["egress"]


def test_the_operator_may_connect_to_the_ports_that_pod_templates_set() -> None:
    ports = [
        {"containerPort": 8265, "$patch": "delete"},
        {"name": "dashboard", "containerPort": 9265},
        {"containerPort": 8000, "$patch": "delete"},
        {"name": "serve", "containerPort": 9000},
    ]
    head = {"podTemplate": {"spec": {"containers": [{"name": "ray-head", "ports": ports}]}}}
    cluster = {"rayVersion": "2.60.0", "image": "ray:2.60.0", "head": head}
    config = {"http_options": {"port": 9000}, "applications": [{"import_path": "chat:app"}]}
    service = {"name": "chat", "cluster": cluster, "serveConfigV2": config}
    _, operator = operator_policies(parse({"tenants": [{"name": "team-a", "services": [service]}]}))
    assert operator["spec"]["egress"][-1]["ports"] == tcp(8265, 8000, 9000, 9265)


def test_an_existing_operator_gets_no_policies() -> None:
    assert operator_policies(parse({"operator": {"install": "existing"}})) == []


def test_volcanos_namespace_is_open_only_for_webhook_and_metrics() -> None:
    settings = {"network": {"monitoring": ["monitoring"]}, "scheduler": {"volcano": {"namespace": "gangs"}}}
    deny, volcano, webhook = scheduler_policies(parse(settings))
    assert {body["metadata"]["namespace"] for body in (deny, volcano, webhook)} == {"gangs"}
    assert deny["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert volcano["spec"]["ingress"][0]["ports"] == tcp(8080, 8081)
    # The API server calls it, from an unknown address.
    assert webhook["spec"]["ingress"] == [{"ports": tcp(8443)}]
    assert webhook["spec"]["podSelector"] == {"matchLabels": {"app": "volcano-admission"}}


def test_kueues_namespace_is_open_only_for_webhook_and_metrics() -> None:
    settings = {"network": {"monitoring": ["monitoring"]}, "scheduler": {"kueue": {"namespace": "queues"}}}
    deny, kueue, webhook = scheduler_policies(parse(settings))
    assert [body["metadata"]["name"] for body in (deny, kueue, webhook)] == ["default-deny", "kueue", "kueue-webhook"]
    assert {body["metadata"]["namespace"] for body in (deny, kueue, webhook)} == {"queues"}
    assert kueue["spec"]["ingress"][0]["ports"] == tcp(8443)
    assert webhook["spec"]["ingress"] == [{"ports": tcp(9443)}]
    assert webhook["spec"]["podSelector"] == {"matchLabels": {"control-plane": "controller-manager"}}


@pytest.mark.parametrize(
    "configured",
    [
        {},
        {"scheduler": {"kueue": {"install": "existing"}}},
        {"scheduler": {"volcano": {"install": "existing"}}},
        {"scheduler": {"volcano": {}}, "network": {"policies": False}},
    ],
)
def test_an_existing_scheduler_gets_no_policies(configured: dict[str, Any]) -> None:
    assert scheduler_policies(parse(configured)) == []
