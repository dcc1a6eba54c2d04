"""What is made of rules that the API server enforces.

CEL and Python are compared on a real API server (tests/engine/test_admission_policies.py).
"""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from components.admission_policies.settings import EXCEPTIONS, AdmissionPoliciesSettings, admission_policies
from core.body import Body
from policies.cel import WITH_PODS, variables
from policies.rule import Severity
from policies.rules import ENFORCEABLE
from policies.walk import Stack
from stacks.load import parse
from stacks.objects.access import installed_namespaces, tenants_namespaces
from stacks.program.build import build
from testbed.recorder import record

pytestmark = pytest.mark.thorough

TODAY = date(2026, 11, 22)

KIND = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"


def made(
    today: date = TODAY, of_tenants: tuple[str, ...] | None = None, **configured: Any
) -> dict[tuple[str, str], Body]:
    """The bodies, by kind and rule."""
    settings = AdmissionPoliciesSettings.model_validate(configured)
    bodies = admission_policies(settings, of_tenants, ("ray-system",), today)
    kinds = {"ValidatingAdmissionPolicy": "policy", "ValidatingAdmissionPolicyBinding": "binding"}
    return {(kinds[each["kind"]], each["metadata"]["name"].removeprefix("ray-platform-")): each for each in bodies}


def actions(bodies: dict[tuple[str, str], Body]) -> dict[str, list[str]]:
    return {rule: each["spec"]["validationActions"] for (kind, rule), each in bodies.items() if kind == "binding"}


def selected(bodies: dict[tuple[str, str], Body], rule: str = "pod-no-host") -> list[Body]:
    found: list[Body] = bodies["binding", rule]["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    return found


def test_each_is_a_mandatory_rule_for_a_single_object() -> None:
    assert len(ENFORCEABLE) >= 20
    for rule in ENFORCEABLE.values():
        assert rule.severity is not Severity.LOW
        assert rule.subject is not Stack
        assert rule.cel
        if rule.kinds:
            assert {kind for _, kind in rule.cel.kinds} <= set(rule.kinds)


def test_a_rule_about_pods_applies_to_all_kinds_with_pods_and_to_ephemeral_containers() -> None:
    rules = made()["policy", "pod-no-privileged"]["spec"]["matchConstraints"]["resourceRules"]
    resources = {f"{each['apiGroups'][0]}/{name}" for each in rules for name in each["resources"]}
    assert {"/pods", "/pods/ephemeralcontainers", "apps/deployments", "batch/cronjobs"} <= resources
    assert {"ray.io/rayclusters", "ray.io/rayjobs", "ray.io/rayservices", "batch.volcano.sh/jobs"} <= resources
    assert len(resources) == len(WITH_PODS) + 1
    assert {tuple(each["operations"]) for each in rules} == {("CREATE", "UPDATE")}


def test_the_message_is_that_of_the_rule_with_its_fix_and_container_names() -> None:
    [rendered] = made()["policy", "img-no-latest"]["spec"]["validations"]
    rule = ENFORCEABLE["img-no-latest"]
    assert rendered["message"] == f"img-no-latest: {rule.what} {rule.fix}"
    assert rendered["messageExpression"].startswith(f'"{rendered["message"]} Broken by " + ')


def test_a_policy_defines_variables_before_their_use() -> None:
    assert [each["name"] for each in variables(["variables.rayPods.all(pod, true)"])] == ["ray", "rayPods"]
    rendered = made()["policy", "img-no-latest"]["spec"]["variables"]
    names = [each["name"] for each in rendered]
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
    assert all("oldObject" not in each["expression"] for each in rendered[:4])
    assert not made()["policy", "job-cron-concurrency"]["spec"]["variables"]


def test_an_update_may_keep_an_existing_violation() -> None:
    [rendered] = made()["policy", "job-cron-concurrency"]["spec"]["validations"]
    now = "object.spec.?concurrencyPolicy.orValue('') in ['Forbid', 'Replace']"
    before = now.replace("object", "oldObject")
    assert rendered["expression"] == f"({now}) || oldObject != null && !({before})"


def test_violations_are_denied_unless_the_stack_file_sets_another_action() -> None:
    assert set(map(tuple, actions(made()).values())) == {("Deny",)}
    rendered = actions(made(action="Audit", rules={"pod-no-host": "Deny", "pod-requests": "Disabled"}))
    assert rendered["pod-no-host"] == ["Deny"]
    assert rendered["pod-nonroot"] == ["Audit"]
    assert "pod-requests" not in rendered


def test_a_rule_that_needs_an_option_is_enforced_once_it_is_set() -> None:
    assert ("policy", "img-registry") not in made()
    [rendered] = made(options={"img-registry": {"allowed": ["docker.io/rayproject"]}})["policy", "img-registry"][
        "spec"
    ]["validations"]
    assert '"docker.io/rayproject/"' in rendered["expression"]


def test_tenants_namespaces_are_selected_by_label_or_by_name_if_they_are_not_of_the_stack() -> None:
    assert selected(made()) == [{"key": "ray-platform/tenant", "operator": "Exists"}]
    stack = parse({"tenants": [{"name": "team-a"}, {"name": "team-b", "createNamespace": False}]})
    [by_name] = selected(made(of_tenants=tenants_namespaces(stack)))
    assert (by_name["operator"], by_name["values"]) == ("In", ["team-a", "team-b"])
    assert tenants_namespaces(parse({"tenants": [{"name": "team-a"}]})) is None


def test_all_namespaces_exclude_those_of_kubernetes_and_operators() -> None:
    [everywhere] = selected(made(namespaces="all", exceptNamespaces=["gpu-operator"]))
    assert everywhere["operator"] == "NotIn"
    assert {"kube-system", "ray-system", "gpu-operator"} <= set(everywhere["values"])
    stack = parse({"scheduler": {"volcano": {}}, "operator": {"namespace": "kuberay"}})
    assert installed_namespaces(stack) == ("kuberay", "volcano-system")


def test_an_exception_ends_after_its_last_day_and_its_reason_is_in_the_cluster() -> None:
    exception = {
        "rule": "pod-no-host",
        "namespace": "team-a",
        "reason": "speaks to a device",
        "owner": "ops",
        "expires": "2026-11-22",
    }
    held = made(exceptions=[exception])
    assert selected(held)[1] == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["team-a"]}
    rendered = held["binding", "pod-no-host"]["metadata"]["annotations"][EXCEPTIONS]
    assert rendered == "team-a until 2026-11-22: speaks to a device (ops)"
    assert len(selected(held, "pod-nonroot")) == 1
    ended = made(today=date(2026, 11, 23), exceptions=[exception])
    assert len(selected(ended)) == 1
    assert "annotations" not in ended["binding", "pod-no-host"]["metadata"]


def test_each_rule_has_a_policy_and_a_binding() -> None:
    found = made()
    assert ("policy", "pod-no-host") in found
    kinds = [kind for kind, _ in found]
    assert kinds.count("policy") == kinds.count("binding") == len(ENFORCEABLE) - 1


def test_rayclusters_wait_for_the_configured_policies(kubectl_that_renders: Path) -> None:
    tenants = [
        {"name": "team-a", "clusters": [{"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}]}
    ]
    stack = parse({"operator": {"location": "config/default"}, "tenants": tenants, "admissionPolicies": {}})
    recorder = record(lambda: build(stack), {"team-a/training-ray-cluster": {"status": {"state": "ready"}}})
    assert recorder.made_before(
        "platform-admission-validatingadmissionpolicy-ray-platform-pod-no-host", "team-a/training-ray-cluster"
    )
