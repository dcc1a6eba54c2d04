"""The policy pack, called as the engine calls it: unknown values, secrets, levels."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from policies.configuration import Configuration
from policies.pack import NAME, Pack
from policies.rules import RULES
from testbed.policies.bodies import default_deny, deployment, queue, ray_cluster
from testbed.policies.wrappers import app_wrapper

ROOT = Path(__file__).parents[3]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270"}
URN = "urn:pulumi:prod::ray-platform::kubernetes:apps/v1:Deployment::it"


class Refusing:
    """A gRPC context whose `abort` raises."""

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise ValueError(f"{code.name}: {details}")


CONTEXT: Any = Refusing()


def struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    message = struct_pb2.Struct()
    message.update(properties)
    return message


def asked(
    pack: Pack, properties: Mapping[str, Any], type_: str = "kubernetes:apps/v1:Deployment", urn: str = URN
) -> list[Any]:
    """The diagnostics of the pack for a resource."""
    request = analyzer_pb2.AnalyzeRequest(type=type_, urn=urn, name="it", properties=struct(properties))
    return list(pack.Analyze(request, CONTEXT).diagnostics)


def violating(**spec: Any) -> dict[str, Any]:
    """A Deployment with these fields in the spec of its pods."""
    body = deployment()
    body["spec"]["template"]["spec"] |= spec
    return body


def names(diagnostics: list[Any], level: int) -> list[str]:
    return [each.policyName for each in diagnostics if each.enforcementLevel == level]


def test_a_violation_is_reported_with_its_place_and_blocks_in_prod() -> None:
    diagnostics = asked(Pack(Configuration(), "prod"), violating(hostNetwork=True))
    assert names(diagnostics, analyzer_pb2.MANDATORY) == ["pod-no-host"]
    [one] = [each for each in diagnostics if each.policyName == "pod-no-host"]
    assert "Deployment/team-a/it: spec.template.spec.hostNetwork: shares it with the node" in one.message
    assert (one.policyPackName, one.urn) == (NAME, URN)
    assert one.severity == analyzer_pb2.POLICY_SEVERITY_CRITICAL


@pytest.mark.parametrize("stack", ["dev", "dev.tenants-01"])
def test_the_stack_s_name_decides_the_levels_of_rules(stack: str) -> None:
    """All stacks of an environment have its levels."""
    configuration = Configuration.model_validate({"environments": {"dev": {"level": "advisory"}}})
    pack = Pack(configuration, "")
    assert names(asked(pack, violating(hostNetwork=True)), analyzer_pb2.MANDATORY) == ["pod-no-host"]
    pack.ConfigureStack(analyzer_pb2.AnalyzerStackConfigureRequest(stack=stack), CONTEXT)
    assert names(asked(pack, violating(hostNetwork=True)), analyzer_pb2.MANDATORY) == []
    info = pack.GetAnalyzerInfo(empty_pb2.Empty(), CONTEXT)
    assert {each.enforcementLevel for each in info.policies} == {analyzer_pb2.ADVISORY}
    assert len(info.policies) == len(RULES)


def test_a_stack_s_own_configuration_takes_precedence() -> None:
    config = {"ray-platform:policies": '{"level": "advisory", "rules": {"pod-no-host": "disabled"}}'}
    pack = Pack(Configuration(), "prod")
    pack.ConfigureStack(analyzer_pb2.AnalyzerStackConfigureRequest(stack="prod", config=config), CONTEXT)
    assert asked(pack, violating(hostNetwork=True)) == asked(pack, violating())
    assert names(asked(pack, violating(hostPID=True, containers=[{}])), analyzer_pb2.MANDATORY) == []
    wrong = analyzer_pb2.AnalyzerStackConfigureRequest(stack="prod", config={"ray-platform:policies": '{"lewel": 1}'})
    with pytest.raises(ValueError, match=r"INVALID_ARGUMENT: ray-platform:policies\.lewel: unknown key 'lewel'"):
        pack.ConfigureStack(wrong, CONTEXT)


def test_a_rule_violated_in_several_places_of_an_object_is_reported_once() -> None:
    body = violating()
    body["spec"]["template"]["spec"]["containers"] *= 3
    for each in body["spec"]["template"]["spec"]["containers"]:
        each["securityContext"]["privileged"] = True
    [one] = [each for each in asked(Pack(Configuration(), "prod"), body) if each.policyName == "pod-no-privileged"]
    assert "containers[0].securityContext.privileged and 2 more: is privileged." in one.message


def test_what_is_inside_a_custom_resource_is_judged() -> None:
    cluster = ray_cluster()
    cluster["spec"]["headGroupSpec"]["serviceType"] = "LoadBalancer"
    wrapper = app_wrapper(cluster)
    type_ = "kubernetes:workload.codeflare.dev/v1beta2:AppWrapper"
    [one] = asked(Pack(Configuration(), "prod"), wrapper, type_)[:1]
    assert one.policyName == "ray-no-public-dashboard"
    assert "RayCluster/team-a/it: spec.headGroupSpec.serviceType: 'LoadBalancer' opens" in one.message
    wrapper["spec"]["components"][0]["template"]["spec"] = UNKNOWN
    [unknown] = asked(Pack(Configuration(), "prod"), wrapper, type_)[:1]
    assert "ray-no-public-dashboard" in unknown.message
    assert "before `pulumi up`" in unknown.message


def test_a_kind_that_no_rule_looks_into_is_reported() -> None:
    pack = Pack(Configuration(), "prod")
    type_, properties = "kubernetes:argoproj.io/v1alpha1:Workflow", {"metadata": {"name": "it"}, "spec": {"a": "b"}}
    resources = [analyzer_pb2.AnalyzerResource(type=type_, urn=URN, name="it", properties=struct(properties))]
    found = pack.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=resources), CONTEXT).diagnostics
    assert names(list(found), analyzer_pb2.ADVISORY) == ["kind-judged"]
    assert "Workflow/it: kind: no rule looks into Workflow of argoproj.io" in found[0].message


def test_an_unknown_value_is_reported_and_does_not_block() -> None:
    diagnostics = asked(Pack(Configuration(), "prod"), violating(hostNetwork=UNKNOWN))
    assert names(diagnostics, analyzer_pb2.MANDATORY) == []
    [unknown] = [each for each in diagnostics if "cannot be known before `pulumi up`" in each.message]
    assert "spec.template.spec.hostNetwork: cannot be known" in unknown.message
    assert unknown.message.endswith("pod-no-host")


def test_secrets_are_judged_and_never_shown() -> None:
    env = [{"name": "PASSWORD", "value": {**SECRET, "value": "hunter2"}}]
    body = deployment()
    body["spec"]["template"]["spec"]["containers"][0] |= {"env": env, "image": {**SECRET, "value": "hunter2"}}
    diagnostics = asked(Pack(Configuration(), "prod"), body)
    assert {"pod-no-plain-secret", "img-no-latest"} <= set(names(diagnostics, analyzer_pb2.MANDATORY))
    assert not [each.message for each in diagnostics if "hunter2" in each.message]


def test_numbers_that_come_as_floats_are_whole() -> None:
    diagnostics = asked(
        Pack(Configuration(), "prod"), violating(securityContext={"runAsUser": 0.0, "runAsNonRoot": True})
    )
    assert "pod-nonroot" in names(diagnostics, analyzer_pb2.MANDATORY)


@pytest.mark.parametrize(
    "type_",
    [
        "pulumi:providers:kubernetes",
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:yaml:ConfigFile",
        "kubernetes:apps/v1:DeploymentPatch",
        "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",
        "aws:s3/bucket:Bucket",
    ],
)
def test_what_is_no_object_of_its_own_is_left_alone(type_: str) -> None:
    assert asked(Pack(Configuration(), "prod"), violating(hostNetwork=True), type_) == []


def test_an_object_that_names_no_kind_has_its_type_s() -> None:
    """SDKs of other languages have typed classes, which leave the kind to the provider."""
    body = {"metadata": {"name": "it", "namespace": "a"}, "spec": {"hostNetwork": True}}
    diagnostics = asked(Pack(Configuration(), "prod"), body, "kubernetes:core/v1:Pod")
    assert "pod-no-host" in names(diagnostics, analyzer_pb2.MANDATORY)


def test_rules_of_the_whole_stack_see_the_inputs_of_all_resources() -> None:
    configuration = Configuration.model_validate(
        {
            "exceptions": [
                {"rule": "pod-no-host", "object": "*", "reason": "because", "owner": "me", "expires": "2999-01-01"}
            ]
        }
    )
    pack = Pack(configuration, "prod")
    asked(pack, ray_cluster(), "kubernetes:ray.io/v1:RayCluster", "ray")
    alone = analyzer_pb2.AnalyzeStackRequest(resources=[analyzer_pb2.AnalyzerResource(urn="ray")])
    first = list(pack.AnalyzeStack(alone, CONTEXT).diagnostics)
    assert "ray-default-deny" in names(first, analyzer_pb2.MANDATORY)
    assert [each for each in first if "exception for *" in each.message and "because (me)" in each.message]
    policy = analyzer_pb2.AnalyzerResource(
        urn="policy", type="kubernetes:networking.k8s.io/v1:NetworkPolicy", properties=struct(default_deny())
    )
    both = analyzer_pb2.AnalyzeStackRequest(resources=[*alone.resources, policy])
    assert "ray-default-deny" not in names(list(pack.AnalyzeStack(both, CONTEXT).diagnostics), analyzer_pb2.MANDATORY)


@pytest.mark.parametrize(("stack", "violated"), [("prod", ["queue-parent-exists"]), ("prod.tenants-01", [])])
def test_the_parents_of_tenants_queues_may_be_in_another_stack_of_the_environment(
    stack: str, violated: list[str]
) -> None:
    own = analyzer_pb2.AnalyzerResource(
        urn="queue",
        type="kubernetes:scheduling.volcano.sh/v1beta1:Queue",
        properties=struct(queue("team-a", parent="research")),
    )
    found = Pack(Configuration(), stack).AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=[own]), CONTEXT)
    assert names(list(found.diagnostics), analyzer_pb2.MANDATORY) == violated


def test_the_engine_s_configuration_takes_precedence_over_the_pack_s() -> None:
    pack = Pack(Configuration.model_validate({"options": {"ray-min-version": {"version": "2.0.0"}}}), "prod")
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig["pod-no-host"].enforcementLevel = analyzer_pb2.DISABLED
    request.policyConfig["ray-min-version"].enforcementLevel = analyzer_pb2.MANDATORY
    request.policyConfig["ray-min-version"].properties.update({"version": "2.99.0"})
    pack.Configure(request, CONTEXT)
    assert asked(pack, violating(hostNetwork=True)) == asked(pack, violating())
    diagnostics = asked(pack, ray_cluster(), "kubernetes:ray.io/v1:RayCluster")
    assert "ray-min-version" in names(diagnostics, analyzer_pb2.MANDATORY)
    request.policyConfig["ray-min-version"].properties.update({"version": "new"})
    with pytest.raises(ValueError, match=r"INVALID_ARGUMENT: .*'new' is not a version"):
        pack.Configure(request, CONTEXT)


def test_the_engine_s_configuration_takes_precedence_over_the_stack_s() -> None:
    pack = Pack(Configuration(), "prod", {"ray-platform:policies": '{"rules": {"pod-no-host": "disabled"}}'})
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig["pod-no-host"].enforcementLevel = analyzer_pb2.MANDATORY
    pack.Configure(request, CONTEXT)
    assert "pod-no-host" in names(asked(pack, violating(hostNetwork=True)), analyzer_pb2.MANDATORY)


def started(configuration: Path) -> "subprocess.Popen[str]":
    """The pack as a language host starts it, from an unrelated folder."""
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", str(ROOT / "policies")],
        cwd=configuration.parent,
        env={**os.environ, "RAY_PLATFORM_POLICIES": str(configuration), "PULUMI_STACK": "dev"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_is_started_by_its_folder_and_prints_its_port_alone(tmp_path: Path) -> None:
    configuration = tmp_path / "configuration.yaml"
    configuration.write_text("environments: {dev: {level: disabled}}")
    with started(configuration) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                info = analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(empty_pb2.Empty())
            assert {each.enforcementLevel for each in info.policies} == {analyzer_pb2.DISABLED}
        finally:
            process.kill()


def test_a_wrong_configuration_ends_it_with_a_message(tmp_path: Path) -> None:
    configuration = tmp_path / "configuration.yaml"
    configuration.write_text("option: {}")
    with started(configuration) as process:
        output, error = process.communicate(timeout=60)
    assert process.returncode != 0
    assert output == ""
    assert f"{configuration}: option: unknown key 'option': did you mean 'options'?" in error
    assert "Traceback" not in error


def test_a_cluster_on_cloudera_ml_is_judged_by_the_inputs_of_its_applications() -> None:
    pack = Pack(Configuration(), "prod")
    group = {"runtime": "docker.example.com/ray:latest", "env": {}, "replicas": 1}
    inputs = {"cluster": "lab", "rayVersion": "2.60.0", "head": group, "groups": {"workers": group}, "serve": ""}
    added = {"__provider": "gANj", "token": SECRET | {"value": "token-of-ray-0815"}}
    found = asked(pack, inputs | added, "pulumi-python:dynamic/ray-platform:CmlNodes")
    assert [each.policyName for each in found] == ["cml-no-latest"]
    assert "CmlRayCluster/lab: spec.head.runtime and 1 more" in found[0].message
    assert "token-of-ray-0815" not in found[0].message
