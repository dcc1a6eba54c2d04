"""How policies and Ingresses are registered."""

import pytest

from components.network.component import (
    DashboardIngress,
    DashboardIngressArgs,
    NetworkPolicies,
    NetworkPoliciesArgs,
)
from components.network.manifests import default_deny
from components.network.settings import IngressSettings
from testbed.recorder import record

pytestmark = pytest.mark.unit


def test_policies_are_created_in_the_namespace() -> None:
    recorder = record(lambda: NetworkPolicies("a-network", NetworkPoliciesArgs([default_deny()], "team-a")))
    policy = recorder.registered["a-network-default-deny"]
    assert policy.type == "kubernetes:networking.k8s.io/v1:NetworkPolicy"
    assert policy.inputs["metadata"]["namespace"] == "team-a"
    assert policy.parent == "a-network"


def test_an_ingress_has_one_host_with_tls_and_the_head_as_backend() -> None:
    keys = {"host": "ray.example.com", "className": "nginx", "tlsSecretName": "ray-tls"}
    settings = IngressSettings.model_validate({**keys, "annotations": {"example.com/a": "b"}})
    args = DashboardIngressArgs(settings, "training", "team-a", "training-head-svc", 8265)
    inputs = record(lambda: DashboardIngress("dashboard", args)).registered["dashboard-ingress"].inputs
    assert inputs["metadata"]["name"] == "training-dashboard"
    assert inputs["metadata"]["annotations"]["example.com/a"] == "b"
    spec = inputs["spec"]
    assert spec["ingressClassName"] == "nginx"
    assert spec["tls"] == [{"hosts": ["ray.example.com"], "secretName": "ray-tls"}]
    (rule,) = spec["rules"]
    assert rule["host"] == "ray.example.com"
    assert rule["http"]["paths"][0]["backend"] == {"service": {"name": "training-head-svc", "port": {"number": 8265}}}
