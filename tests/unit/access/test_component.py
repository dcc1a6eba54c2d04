"""The access objects of a stack: their namespaces and their order."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from components.access.admission import Restricted
from components.access.component import (
    ClusterAccess,
    ClusterAccessArgs,
    TenantAccess,
    TenantAccessArgs,
    TenantRestrictions,
    TenantRestrictionsArgs,
)
from components.access.personas import AccessSettings, NamedCluster, RayUserSettings
from testbed.recorder import Registered, record

pytestmark = pytest.mark.unit


def made(program: Callable[[], Any]) -> list[Registered]:
    """The objects that a program creates."""
    return [each for each in record(program).registered.values() if each.type.startswith("kubernetes:")]


def names(objects: list[Registered]) -> set[tuple[str, str, str | None]]:
    """Kind, name and namespace of each."""
    return {
        (each.inputs["kind"], each.inputs["metadata"]["name"], each.inputs["metadata"].get("namespace"))
        for each in objects
    }


def tenant(**settings: Any) -> set[tuple[str, str, str | None]]:
    """The objects of a tenant `team-a`."""
    return names(made(lambda: TenantAccess("access", TenantAccessArgs("team-a", "team-a", **settings))))


def restrictions(stack: str = "prod", **admitted: Any) -> list[Registered]:
    """The admission policies of a stack."""
    args = TenantRestrictionsArgs(stack, Restricted(**admitted))
    return made(lambda: TenantRestrictions("restrictions", args))


def test_a_tenant_without_people_has_no_objects() -> None:
    assert tenant(clusters=[NamedCluster("training", "training")]) == set()


def test_four_policies_of_a_stack_restrict_all_of_its_tenants() -> None:
    policies = {"scaling-only", "ray-jobs", "own-ray-jobs", "neighbours"}
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    assert names(restrictions("Prod_eu")) == {
        (kind, f"ray-platform.prod-eu.{each}", None) for kind in kinds for each in policies
    }


@pytest.mark.parametrize(
    ("namespaces", "selector"),
    [
        (None, {"key": "ray-platform/tenant", "operator": "Exists"}),
        (("b", "a"), {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}),
    ],
)
def test_tenants_namespaces_are_selected_by_label_or_by_name(
    namespaces: tuple[str, ...] | None, selector: dict[str, Any]
) -> None:
    bindings = [each.inputs["spec"] for each in restrictions(namespaces=namespaces) if "Binding" in each.type]
    assert [each["matchResources"]["namespaceSelector"]["matchExpressions"] for each in bindings] == [[selector]] * 4
    assert [each["validationActions"] for each in bindings] == [["Deny"]] * 4


def test_host_names_are_restricted_where_a_tenant_may_have_ingresses() -> None:
    hosts = restrictions(hosts={"team-a": ["a.example.com"]})
    (binding,) = [each.inputs for each in hosts if each.name == "restrictions-ingress-hosts-policy-binding"]
    assert binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a"]}
    ]


def test_no_annotation_gives_an_ingress_other_host_names() -> None:
    """Whether the API server refuses them: tests/engine/test_network.py."""
    made = restrictions(hosts={"team-a": ["a.example.com"]})
    (policy,) = [each.inputs for each in made if each.name == "restrictions-ingress-hosts-policy"]
    (rule,) = policy["spec"]["validations"]
    for of in ("object", "oldObject"):
        named = f'{of}.metadata.?annotations.orValue({{}}).all(key, !key.matches("/server-alias(-regex)?$"))'
        assert named in rule["expression"]


def test_runs_of_job_templates_have_a_policy_with_the_template_as_its_parameter() -> None:
    made = {each.name.removeprefix("restrictions-"): each.inputs["spec"] for each in restrictions(templates=["tune"])}
    assert made["job-template-policy"]["paramKind"] == {"apiVersion": "ray.io/v1", "kind": "RayCronJob"}
    binding = made["job-template:tune-binding"]
    assert binding["paramRef"] == {"name": "tune", "parameterNotFoundAction": "Deny"}
    assert binding["matchResources"]["objectSelector"] == {"matchLabels": {"ray-platform/job-template": "tune"}}


def test_other_policies_leave_runs_to_it_once_it_exists() -> None:
    recorder = record(lambda: TenantRestrictions("r", TenantRestrictionsArgs("prod", Restricted(templates=["tune"]))))
    others = recorder.registered["r-ray-jobs-policy-binding"].inputs["spec"]["matchResources"]["objectSelector"]
    assert others == {
        "matchExpressions": [{"key": "ray-platform/job-template", "operator": "NotIn", "values": ["tune"]}]
    }
    for part in ("job-template-policy", "job-template:tune-binding"):
        assert recorder.made_before(f"r-{part}", "r-ray-jobs-policy-binding")


def test_the_right_to_run_a_template_comes_after_the_policies() -> None:
    def program() -> None:
        policies = TenantRestrictions("r", TenantRestrictionsArgs("prod", Restricted(templates=["tune"])))
        args = TenantAccessArgs("team-a", "team-a", users=[RayUserSettings(subject="group:team")], templates=["tune"])
        TenantAccess("access", args, pulumi.ResourceOptions(depends_on=[policies]))

    recorder = record(program)
    for role in ("ray-job-template:tune", "ray-job-submitter"):
        assert recorder.made_before("r-ray-jobs-policy-binding", f"access-{role}-role-binding")


def test_rayjobs_on_an_existing_raycluster_are_refused_only_with_volcano() -> None:
    def messages(**admitted: Any) -> str:
        policies = [each.inputs["spec"] for each in restrictions(**admitted) if each.name.endswith("neighbours-policy")]
        return " ".join(each.get("message", "") for each in policies[0]["validations"])

    assert "KubeRay starts no RayJob on an existing RayCluster" in messages(volcano=True)
    assert "existing RayCluster" not in messages()


def test_pods_with_kubernetes_tokens_have_an_account_with_its_rights() -> None:
    shared = NamedCluster("shared", accounts=("shared",))
    assert tenant(clusters=[shared], accounts=["shared"]) == {
        ("ServiceAccount", "shared", "team-a"),
        ("Role", "ray-platform:pods:shared", "team-a"),
        ("RoleBinding", "ray-platform:pods:shared", "team-a"),
        ("ClusterRoleBinding", "ray-platform:token-review:team-a:shared", None),
    }


def test_dependents_of_a_tenants_access_wait_for_its_roles() -> None:
    def program() -> None:
        access = TenantAccess("access", TenantAccessArgs("team-a", "team-a", admins=["group:leads"]))
        pulumi.CustomResource("test:RayCluster", "cluster", {}, pulumi.ResourceOptions(depends_on=[access]))

    assert record(program).made_before("access-ray-cluster-admin-role-binding", "cluster")


@pytest.mark.parametrize(
    ("owns", "roles"), [(True, {"ray-platform:aggregate-to-view", "ray-platform:aggregate-to-edit"}), (False, set())]
)
def test_the_stack_that_installs_kuberays_kinds_adds_them_to_kubernetes_own_roles(owns: bool, roles: set[str]) -> None:
    args = ClusterAccessArgs(AccessSettings(), "ray-system", owns_kinds=owns)
    assert {name for _, name, _ in names(made(lambda: ClusterAccess("access", args)))} == roles


def test_cluster_admins_have_a_cluster_role_and_a_role_in_the_operators_namespace() -> None:
    args = ClusterAccessArgs(AccessSettings(cluster_admins=("group:platform",)), "kuberay", owns_kinds=False)
    assert names(made(lambda: ClusterAccess("access", args))) == {
        ("ClusterRole", "ray-platform:cluster-admin", None),
        ("ClusterRoleBinding", "ray-platform:cluster-admin", None),
        ("Role", "ray-platform:cluster-admin", "kuberay"),
        ("RoleBinding", "ray-platform:cluster-admin", "kuberay"),
    }
