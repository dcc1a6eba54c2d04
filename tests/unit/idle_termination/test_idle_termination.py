"""The pod that suspends idle RayClusters: what it gets, what it may do, and when it is created."""

import json
from typing import Any

import pytest

from components.access.admission import restrictions
from components.access.restricted import Restricted
from components.idle_termination.manifests import LABELS
from kuberay.pod_security import violations
from stacks.load import parse
from stacks.objects.network import policies_of_clusters
from stacks.objects.tenant_programs import idle_termination
from stacks.program.build import build
from stacks.settings import StackSettings
from testbed.recorder import record

NAME = "ray-idle-termination"
RESTS = {"idleTerminationOptions": {"timeoutSeconds": 600}}


def stack(*clusters: dict[str, Any], **tenant: Any) -> StackSettings:
    ray = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "autoscaling": False}
    named = [{"name": f"c{at}", **ray, **each} for at, each in enumerate(clusters)]
    return parse({"tenants": [{"name": "team-a", "clusters": named, **tenant}]})


def objects(settings: StackSettings) -> dict[str, Any]:
    return idle_termination(settings, settings.tenants[0])


def argument(found: dict[str, Any]) -> dict[str, Any]:
    """What the program is started with."""
    argument: dict[str, Any] = json.loads(container(found)["command"][3])
    return argument


def container(found: dict[str, Any]) -> dict[str, Any]:
    (only,) = found["deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def test_its_pod_meets_restricted_and_has_rays_image_and_the_tenants_pull_secrets() -> None:
    settings = stack({**RESTS, "env": {"A": "b"}, "tls": {}}, images={"pullSecrets": ["registry"]})
    template = objects(settings)["deployment"]["spec"]["template"]
    assert list(violations(template, (), "restricted")) == []
    assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert container(objects(settings))["image"] == "rayproject/ray:2.60.0"
    assert "env" not in container(objects(settings))
    program = container(objects(stack(RESTS)))["command"][2]
    assert "$(" not in program
    assert "$$" not in program
    assert objects(stack({})) == {}


def test_it_knows_the_dashboard_the_timeout_and_the_token_of_each_cluster() -> None:
    ports = [
        {"name": "dashboard", "containerPort": 8265, "$patch": "delete"},
        {"name": "dashboard", "containerPort": 9265},
    ]
    moved = {"head": {"podTemplate": {"spec": {"containers": [{"name": "ray-head", "ports": ports}]}}}}
    service = {"overrides": {"headGroupSpec": {"headService": {"metadata": {"name": "entry"}}}}}
    found = objects(
        stack(
            {**RESTS, "authOptions": {"secretName": "shared"}},
            {},
            {**RESTS, **moved, "authOptions": {"mode": "disabled"}},
            {**RESTS, **service, "authOptions": {"enableK8sTokenAuth": True}},
        )
    )
    assert argument(found) == {
        "namespace": "team-a",
        "clusters": [
            {
                "name": "c0",
                "url": "http://c0-head-svc.team-a.svc:8265",
                "timeoutSeconds": 600,
                "tokenFile": "/etc/ray/tokens/c0",
            },
            {"name": "c2", "url": "http://c2-head-svc.team-a.svc:9265", "timeoutSeconds": 600, "tokenFile": None},
            {
                "name": "c3",
                "url": "http://entry.team-a.svc:8265",
                "timeoutSeconds": 600,
                "tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
            },
        ],
    }
    (mount,) = container(found)["volumeMounts"]
    (volume,) = found["deployment"]["spec"]["template"]["spec"]["volumes"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/etc/ray/tokens")
    (source,) = volume["projected"]["sources"]
    assert source["secret"] == {
        "name": "shared",
        "optional": True,
        "items": [{"key": "auth_token", "path": "c0"}],
    }


def test_it_may_read_and_patch_its_clusters_and_nothing_more() -> None:
    found = objects(stack(RESTS, {}, {**RESTS, "authOptions": {"enableK8sTokenAuth": True}}))
    rules = [(each["resources"], each["verbs"], each.get("resourceNames")) for each in found["role"]["rules"]]
    assert rules == [
        (["rayclusters"], ["get", "patch"], ["c0", "c2"]),
        (["rayjobs"], ["list"], None),
        (["rayclusters"], ["ray:write"], ["c2"]),
    ]


def test_admission_lets_its_account_suspend_and_no_other_one_of_the_namespace() -> None:
    found = {each.name: each.body for each in restrictions("dev", Restricted())}
    spec = found["scaling-only-policy"]["spec"]
    free = "request.userInfo.username.endsWith(':ray-idle-termination') ? ['suspend'] : []"
    assert [free in each["expression"] for each in spec["validations"]][:3] == [True, True, False]


def test_it_reaches_the_heads_of_its_clusters_alone() -> None:
    settings = stack(RESTS, {})
    policies = {
        each["metadata"]["name"]: each["spec"] for _, each in policies_of_clusters(settings, settings.tenants[0])
    }
    itself = {"podSelector": {"matchLabels": LABELS}}
    peers = {
        name: [peer for rule in each.get("ingress", ()) for peer in rule["from"]] for name, each in policies.items()
    }
    assert [name for name, each in peers.items() if itself in each] == ["head.c0"]
    out = policies["idle-termination"]
    assert out["podSelector"] == itself["podSelector"]
    assert [port["port"] for rule in out["egress"] for port in rule["ports"]] == [8265, 443, 6443]


@pytest.mark.usefixtures("kubectl_that_renders")
def test_it_is_created_after_the_clusters_whose_tokens_it_reads() -> None:
    settings = stack(RESTS)
    recorder = record(lambda: build(settings))
    deployment = "team-a/idle-termination-deployment"
    assert recorder.made_before("team-a/c0-ray-cluster", deployment)
    assert recorder.made_before("team-a/idle-termination-role-binding", deployment)
    assert recorder.made_before(deployment, "team-a/guard")
