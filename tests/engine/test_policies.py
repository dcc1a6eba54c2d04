"""The policy pack on the real engine: our own stack, values that a preview does not know, and secrets."""

import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from local.pulumi import POLICY_PACK
from local.rehearsal import Rehearsal
from testbed.harness import Project
from tests.engine.conftest import PROGRAMS, MakeProject, MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(600)]


def test_our_own_stack_passes_in_mandatory_mode(stack: MakeStack) -> None:
    """In a stack that the pack's configuration does not name all rules are mandatory."""

    def with_everything(settings: dict[str, Any]) -> None:
        settings["scheduler"] = {"volcano": {}}
        settings["redis"] = {}
        settings["tenants"][0]["clusters"][0]["faultTolerance"] = True

    strict = stack("strict")
    strict.edit(with_everything)
    output = strict.pulumi("preview", *POLICY_PACK).output
    assert "ray-platform-policies" in output
    assert "[mandatory]" not in output


def share_the_node(settings: dict[str, Any]) -> None:
    """The head uses the node's network, in a namespace whose Pod Security allows it."""
    settings["tenants"][0]["podSecurity"] = "privileged"
    settings["tenants"][0]["clusters"][0]["head"] = {"podTemplate": {"spec": {"hostNetwork": True}}}


def test_the_preview_of_a_stack_that_violates_a_rule_fails(stack: MakeStack) -> None:
    violating = stack("violating")
    violating.edit(share_the_node)
    output = " ".join(violating.pulumi("preview", *POLICY_PACK, fails=True).output.split())
    assert "[mandatory] [severity: critical] pod-no-host" in output
    assert "training: spec.headGroupSpec.template.spec.hostNetwork: shares it with the node" in output


@pytest.mark.thorough
def test_the_same_violation_is_advice_if_the_stack_configures_that(stack: MakeStack) -> None:
    def advised(settings: dict[str, Any]) -> None:
        share_the_node(settings)
        settings["policies"] = {"rules": {"pod-no-host": "advisory", "ns-psa-labels": "advisory"}}

    lenient = stack("lenient")
    lenient.edit(advised)
    output = " ".join(lenient.pulumi("preview", *POLICY_PACK).output.split())
    assert "[advisory] [severity: critical] pod-no-host" in output
    assert "[mandatory]" not in output
    assert "shares it with the node" in output


@pytest.fixture
def unknown(project: MakeProject, shared_cluster: Rehearsal) -> Project:
    """Another program, with the SDK's typed classes."""
    return project(PROGRAMS / "host_network.py", shared_cluster)


def test_a_preview_reports_unknown_values_and_up_judges_them(unknown: Project, tmp_path: Path) -> None:
    levels = tmp_path / "levels.json"
    levels.write_text(json.dumps({"all": "advisory", "pod-no-host": "mandatory"}))
    configured = (*POLICY_PACK, "--policy-pack-config", str(levels))
    preview = " ".join(unknown.pulumi("preview", *configured).output.split())
    assert "spec.hostNetwork: cannot be known before `pulumi up`, which asks the rule again: pod-no-host" in preview
    up = " ".join(unknown.pulumi("up", "--yes", "--skip-preview", *configured, fails=True).output.split())
    assert "Pod/default/it: spec.hostNetwork: shares it with the node" in up
    unknown.pulumi("destroy", "--yes", "--skip-preview")


@pytest.mark.thorough
def test_a_missing_field_is_remediated_and_stays(unknown: Project, core: client.CoreV1Api, tmp_path: Path) -> None:
    """The object also has a value that is unknown in a preview, and a secret, which stays secret."""
    levels = tmp_path / "levels.json"
    levels.write_text(json.dumps({"all": "disabled", "pod-no-privesc": "remediate"}))
    configured = (*POLICY_PACK, "--policy-pack-config", str(levels))
    output = unknown.pulumi("up", "--yes", "--skip-preview", *configured).output
    assert "[remediate]  pod-no-privesc  (1 resource)" in output
    pod: Any = core.read_namespaced_pod("it", "default")
    assert pod.spec.containers[0].security_context.allow_privilege_escalation is False
    [remediated] = [each for each in unknown.resources() if each["type"] == "kubernetes:core/v1:Pod"]
    assert "hunter2" not in output + str(remediated["inputs"])
    unknown.pulumi("preview", "--expect-no-changes", *configured)
    unknown.pulumi("destroy", "--yes", "--skip-preview")


@pytest.mark.thorough
def test_secrets_are_judged_and_never_printed(unknown: Project) -> None:
    output = unknown.pulumi("preview", *POLICY_PACK, fails=True).output
    assert "hunter2" not in output
    assert "[secret] is another image tomorrow" in output
    assert "correct-horse" not in output
