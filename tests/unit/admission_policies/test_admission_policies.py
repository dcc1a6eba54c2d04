"""What is made of rules that the API server enforces.

That CEL says the same as Python is tried on a real API server (tests/engine/test_admission_policies.py).
"""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from components.admission_policies.component import AdmissionPolicies, AdmissionPoliciesArgs
from components.admission_policies.settings import EXCEPTIONS, AdmissionPoliciesSettings, admission_policies
from policies.cel import WITH_PODS, variables
from policies.rule import Severity
from policies.rules import ENFORCEABLE
from policies.walk import Stack
from stacks.access import installed_namespaces, tenants_namespaces
from stacks.build import build
from stacks.load import parse
from testbed.recorder import record

pytestmark = pytest.mark.unit

Body = dict[str, Any]

TODAY = date(2026, 11, 22)

KIND = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"


def made(today: date = TODAY, of_tenants: tuple[str, ...] | None = None, **said: Any) -> dict[tuple[str, str], Body]:
    """The bodies, by kind and rule."""
    settings = AdmissionPoliciesSettings.model_validate(said)
    bodies = admission_policies(settings, of_tenants, ("ray-system",), today)
    kinds = {"ValidatingAdmissionPolicy": "policy", "ValidatingAdmissionPolicyBinding": "binding"}
    return {(kinds[each["kind"]], each["metadata"]["name"].removeprefix("ray-platform-")): each for each in bodies}


def actions(bodies: dict[tuple[str, str], Body]) -> dict[str, list[str]]:
    return {rule: each["spec"]["validationActions"] for (kind, rule), each in bodies.items() if kind == "binding"}


def selected(bodies: dict[tuple[str, str], Body], rule: str = "pod-no-host") -> list[Body]:
    found: list[Body] = bodies["binding", rule]["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    return found


def test_each_is_a_rule_about_one_object_that_is_no_mere_advice() -> None:
    assert len(ENFORCEABLE) >= 20
    for rule in ENFORCEABLE.values():
        assert rule.severity is not Severity.LOW
        assert rule.subject is not Stack
        assert rule.cel
        if rule.kinds:
            assert {kind for _, kind in rule.cel.kinds} <= set(rule.kinds)


def test_a_rule_about_pods_is_asked_of_whatever_has_them_and_of_debugging_containers() -> None:
    rules = made()["policy", "pod-no-privileged"]["spec"]["matchConstraints"]["resourceRules"]
    resources = {f"{each['apiGroups'][0]}/{name}" for each in rules for name in each["resources"]}
    assert {"/pods", "/pods/ephemeralcontainers", "apps/deployments", "batch/cronjobs"} <= resources
    assert {"ray.io/rayclusters", "ray.io/rayjobs", "ray.io/rayservices", "batch.volcano.sh/jobs"} <= resources
    assert len(resources) == len(WITH_PODS) + 1
    assert {tuple(each["operations"]) for each in rules} == {("CREATE", "UPDATE")}


def test_the_message_is_the_rule_s_own_with_its_fix_and_with_names_of_containers() -> None:
    [said] = made()["policy", "img-no-latest"]["spec"]["validations"]
    rule = ENFORCEABLE["img-no-latest"]
    assert said["message"] == f"img-no-latest: {rule.what} {rule.fix}"
    assert said["messageExpression"].startswith(f'"{said["message"]} Broken by " + ')


def test_a_policy_says_the_variables_that_it_uses_before_it_does() -> None:
    assert [each["name"] for each in variables(["variables.rayPods.all(pod, true)"])] == ["ray", "rayPods"]
    said = made()["policy", "img-no-latest"]["spec"]["variables"]
    names = [each["name"] for each in said]
    assert names == [
        "ray",
        "templates",
        "rayPods",
        "pods",
        "rayBefore",
        "templatesBefore",
        "rayPodsBefore",
        "podsBefore",
    ]
    assert all("oldObject" not in each["expression"] for each in said[:4])
    assert not made()["policy", "net-no-external-ips"]["spec"]["variables"]


def test_what_broke_the_rule_before_an_update_is_left_alone() -> None:
    [said] = made()["policy", "net-no-external-ips"]["spec"]["validations"]
    now = "object.spec.?externalIPs.orValue([]).size() == 0"
    assert said["expression"] == f"({now}) || oldObject != null && !(oldO{now[1:]})"


def test_all_are_denied_or_as_the_stack_file_says() -> None:
    assert set(map(tuple, actions(made()).values())) == {("Deny",)}
    said = actions(made(action="Audit", rules={"pod-no-host": "Deny", "pod-requests": "Disabled"}))
    assert said["pod-no-host"] == ["Deny"]
    assert said["pod-nonroot"] == ["Audit"]
    assert "pod-requests" not in said


def test_a_rule_that_has_to_be_told_what_is_allowed_is_asked_when_it_is() -> None:
    assert ("policy", "img-registry") not in made()
    [said] = made(options={"img-registry": {"allowed": ["docker.io/rayproject"]}})["policy", "img-registry"]["spec"][
        "validations"
    ]
    assert '"docker.io/rayproject/"' in said["expression"]


def test_namespaces_of_tenants_are_known_by_their_label_or_by_name_where_the_stack_did_not_make_them() -> None:
    assert selected(made()) == [{"key": "ray-platform/tenant", "operator": "Exists"}]
    stack = parse({"tenants": [{"name": "team-a"}, {"name": "team-b", "createNamespace": False}]})
    [by_name] = selected(made(of_tenants=tenants_namespaces(stack)))
    assert (by_name["operator"], by_name["values"]) == ("In", ["team-a", "team-b"])
    assert tenants_namespaces(parse({"tenants": [{"name": "team-a"}]})) is None


def test_everywhere_is_but_where_kubernetes_and_operators_are() -> None:
    [everywhere] = selected(made(namespaces="all", exceptNamespaces=["gpu-operator"]))
    assert everywhere["operator"] == "NotIn"
    assert {"kube-system", "ray-system", "gpu-operator"} <= set(everywhere["values"])
    stack = parse({"scheduler": {"volcano": {}}, "operator": {"namespace": "kuberay"}})
    assert installed_namespaces(stack) == ("kuberay", "volcano-system")


def test_an_exception_holds_to_its_last_day_and_says_in_the_cluster_why() -> None:
    exception = {
        "rule": "pod-no-host",
        "namespace": "team-a",
        "reason": "speaks to a device",
        "owner": "ops",
        "expires": "2026-11-22",
    }
    held = made(exceptions=[exception])
    assert selected(held)[1] == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["team-a"]}
    said = held["binding", "pod-no-host"]["metadata"]["annotations"][EXCEPTIONS]
    assert said == "team-a until 2026-11-22: speaks to a device (ops)"
    assert len(selected(held, "pod-nonroot")) == 1
    ended = made(today=date(2026, 11, 23), exceptions=[exception])
    assert len(selected(ended)) == 1
    assert "annotations" not in ended["binding", "pod-no-host"]["metadata"]


def test_a_policy_and_its_binding_are_made_for_each_rule() -> None:
    args = AdmissionPoliciesArgs(AdmissionPoliciesSettings(), None)
    recorder = record(lambda: AdmissionPolicies("admission", args))
    kinds = recorder.kinds()
    assert "admission-ray-platform-pod-no-host-policy" in kinds[KIND]
    assert len(kinds[KIND]) == len(kinds[f"{KIND}Binding"]) == len(ENFORCEABLE) - 1


def test_rayclusters_wait_for_the_policies_that_a_stack_asks_for(kubectl_that_renders: Path) -> None:
    tenants = [
        {"name": "team-a", "clusters": [{"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}]}
    ]
    stack = parse({"operator": {"location": "config/default"}, "tenants": tenants, "admissionPolicies": {}})
    recorder = record(lambda: build(stack), {"team-a/training-ray-cluster": {"status": {"state": "ready"}}})
    assert recorder.made_before("platform-admission-ray-platform-pod-no-host-policy", "team-a/training-ray-cluster")
