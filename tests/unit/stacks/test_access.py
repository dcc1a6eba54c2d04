"""Tenants in a stack: who may use which RayCluster, and the stack's own pods in their namespaces."""

from collections.abc import Iterator
from typing import Any

import pytest

from components.access.personas import NamedCluster
from kuberay.pod_security import violations
from stacks.load import parse
from stacks.objects.access import named_clusters, own_accounts, restricted
from stacks.objects.ray_clusters import template_objects
from stacks.objects.tenant_programs import idle_termination, run_history
from stacks.program.build import build
from stacks.settings import StackSettings, TenantSettings
from testbed.recorder import Recorder, record

LONG = "a-name-of-a-raycluster-that-is-51-characters-long-x"


def stack_of(*clusters: dict[str, Any], **settings: Any) -> StackSettings:
    """A stack with one tenant, with these clusters and other settings."""
    shared = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    return parse({"tenants": [{"name": "team-a", "clusters": [{**shared, **each} for each in clusters], **settings}]})


def tenant(*clusters: dict[str, Any], **settings: Any) -> TenantSettings:
    """The tenant of such a stack."""
    (made,) = stack_of(*clusters, **settings).tenants
    return made


def named(*clusters: dict[str, Any], **settings: Any) -> list[NamedCluster]:
    """The RayClusters of such a stack's tenant."""
    made = stack_of(*clusters, **settings)
    return list(named_clusters(made, made.tenants[0]))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, NamedCluster("c", "c")),
        ({"authOptions": {"mode": "token", "secretName": "mine"}}, NamedCluster("c", "mine")),
        ({"overrides": {"authOptions": {"secretName": "mine"}}}, NamedCluster("c", "mine")),
        ({"authOptions": {"mode": "disabled"}}, NamedCluster("c")),
        ({"overrides": {"authOptions": None}}, NamedCluster("c")),
        ({"rayVersion": "2.51.0", "image": "rayproject/ray:2.51.0"}, NamedCluster("c")),
        ({"authOptions": {"mode": "token", "enableK8sTokenAuth": True}}, NamedCluster("c", accounts=("c",))),
        (
            {"authOptions": {"mode": "token", "enableK8sTokenAuth": True}, "serviceAccount": "trainer"},
            NamedCluster("c", accounts=("trainer",)),
        ),
        # KubeRay keeps the last 50 characters, and replaces a first one that is not a letter (util.go: CheckName).
        ({"name": LONG}, NamedCluster(LONG, "r" + LONG[2:])),
    ],
)
def test_a_cluster_has_a_token_if_its_spec_sets_one(settings: dict[str, Any], expected: NamedCluster) -> None:
    assert named({"name": "c", **settings}) == [expected]
    # Those of a stack of the tenant's own are given by name.
    assert named(clusterNames=["adhoc"]) == [NamedCluster("adhoc", "adhoc")]


def test_an_account_is_only_created_if_it_is_set_or_needed() -> None:
    tokens = {"authOptions": {"mode": "token", "enableK8sTokenAuth": True}}
    assert own_accounts(tenant({"name": "c"})) == []
    assert own_accounts(tenant({"name": "c", **tokens}, {"name": "d"})) == ["c"]
    assert own_accounts(tenant({"name": "c", **tokens, "serviceAccount": "trainer"})) == []
    assert own_accounts(tenant({"name": "c", **tokens}, rayDeployer={})) == []


def account_of_the_head(recorder: Recorder) -> str | None:
    spec = recorder.registered["team-a/c-ray-cluster"].inputs["spec"]
    account: str | None = spec["headGroupSpec"]["template"]["spec"].get("serviceAccountName")
    return account


@pytest.mark.usefixtures("kubectl_that_renders")
def test_a_tenants_rayclusters_run_as_its_ray_deployer_if_it_has_one() -> None:
    with_deployer = record(lambda: build(stack_of({"name": "c"}, rayDeployer={"serviceAccount": "runner"})))
    assert account_of_the_head(with_deployer) == "runner"
    assert with_deployer.made_before("team-a/ray-deployer-role-binding", "team-a/c-ray-cluster")
    without = record(lambda: build(stack_of({"name": "c"})))
    assert account_of_the_head(without) is None
    assert not [name for name in without.registered if "ray-deployer" in name]


@pytest.mark.usefixtures("kubectl_that_renders")
@pytest.mark.parametrize("allowed", [True, False])
def test_ray_cluster_admins_may_create_ingresses_if_the_tenant_may(allowed: bool) -> None:
    settings = {
        "network": {"ingressController": "ingress-nginx"},
        "tenants": [{"name": "team-a", "admins": ["group:leads"], "network": {"ingress": allowed}}],
    }
    roles = record(lambda: build(parse(settings))).registered
    (admin,) = [made for name, made in roles.items() if name.endswith("ray-cluster-admin-role")]
    assert allowed == any("ingresses" in rule["resources"] for rule in admin.inputs["rules"])


OF_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
OF_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
HEAD = {"containers": [{"name": "ray-head", "securityContext": OF_CONTAINER}], "securityContext": OF_POD}
CLUSTER = {
    "rayVersion": "2.60.0",
    "image": "rayproject/ray:2.60.0",
    "autoscaling": False,
    "podDefaults": "none",
    "head": {"podTemplate": {"spec": HEAD}},
}
NIGHTLY = {
    "name": "nightly",
    "entrypoint": "python train.py",
    "submissionMode": "HTTPMode",
    "cluster": CLUSTER,
    "cron": {"schedule": "0 3 * * *"},
}


def stack(pod_security: str) -> StackSettings:
    tenant = {
        "name": "team-a",
        "podSecurity": pod_security,
        "storage": [{"name": "records", "storageClass": "shared", "size": "1Gi"}],
        "runHistory": {"storage": "records"},
        "clusters": [{**CLUSTER, "name": "adopted", "idleTerminationOptions": {"timeoutSeconds": 600}}],
        "jobTemplates": [NIGHTLY],
    }
    return parse({"tenants": [tenant]})


def templates(settings: StackSettings) -> Iterator[dict[str, Any]]:
    (tenant,) = settings.tenants
    yield idle_termination(settings, tenant)["deployment"]["spec"]["template"]
    yield run_history(settings, tenant)["stateful-set"]["spec"]["template"]
    schedule = template_objects(settings, tenant, tenant.job_templates[0])["nightly:schedule"]
    yield schedule["spec"]["jobTemplate"]["spec"]["template"]


def test_they_meet_pod_security_also_beside_a_cluster_without_defaults() -> None:
    """Pod templates give such a cluster what the level requires, and these pods do not have them."""
    found = list(templates(stack("restricted")))
    assert len(found) == 3
    assert all(list(violations(template, (), "restricted")) == [] for template in found)
    for template in templates(stack("baseline")):
        assert "runAsNonRoot" not in template["spec"].get("securityContext", {})


def test_what_the_stack_file_has_is_what_tenants_may_use() -> None:
    pool = {
        "pool": "a",
        "count": 1,
        "cpu": 8,
        "memory": "32Gi",
        "taints": [{"key": "dedicated", "effect": "NoSchedule"}],
    }
    tenant = {"name": "team-a", "quota": {"nodePorts": 2}}
    found = restricted(
        parse({"nodes": [pool], "tenants": [tenant, {"name": "team-b", "quota": {}}, {"name": "team-c"}]})
    )
    assert found.exposed == {"team-a": ("NodePort",), "team-b": (), "team-c": ()}
    assert found.taints == ("nvidia.com/gpu", "dedicated")
