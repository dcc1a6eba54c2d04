"""Remedies: each fixes its violation and changes nothing else. It keeps values that are set or not known."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import analyzer_pb2

from core.body import Body
from policies.configuration import Configuration, Level
from policies.pack import Pack
from policies.rules import RULES
from testbed.policies.bodies import deployment, namespace, pod, ray_cluster
from testbed.policies.case import MISSING, put
from tests.unit.policies.test_pack import CONTEXT, SECRET, UNKNOWN, names, struct

REMEDIES = [rule.id for rule in RULES if rule.remedy]
EXCEPTION = {"object": "*", "reason": "because", "owner": "me", "expires": "2999-01-01"}

C = "spec containers 0 securityContext"
WORKER = "spec workerGroupSpecs 0 template spec"
WARN = "metadata labels pod-security.kubernetes.io/warn"
BACKGROUND = "metadata annotations pulumi.com/deletionPropagationPolicy"


@dataclass(frozen=True)
class Remedy:
    """A field that the remedy of a rule sets if it is missing, and keeps if it is set."""

    rule: str
    body: Body
    at: str
    remedied: Any
    """The value that the remedy sets."""
    violating: Any
    """A value that somebody may have set, and that violates the rule."""
    type: str = "kubernetes:core/v1:Pod"

    def without(self) -> Body:
        made = copy.deepcopy(self.body)
        put(made, self.at, MISSING)
        return made


POD = (pod(), "kubernetes:core/v1:Pod")
RAY = (ray_cluster(), "kubernetes:ray.io/v1:RayCluster")


def remedy(rule: str, made: tuple[Body, str], at: str, expected: Any, intended: Any) -> Remedy:
    return Remedy(rule, made[0], at, expected, intended, made[1])


CASES = [
    remedy("pod-no-privesc", POD, f"{C} allowPrivilegeEscalation", False, True),
    remedy("pod-no-privesc", RAY, "spec autoscalerOptions securityContext allowPrivilegeEscalation", False, True),
    remedy("pod-drop-all", POD, f"{C} capabilities", {"drop": ["ALL"]}, {"drop": ["NET_RAW"]}),
    remedy("pod-drop-all", RAY, f"{WORKER} containers 0 securityContext capabilities", {"drop": ["ALL"]}, {"drop": []}),
    remedy("pod-seccomp", POD, f"{C} seccompProfile", {"type": "RuntimeDefault"}, {"type": "Unconfined"}),
    remedy("ray-worker-no-sa-token", RAY, f"{WORKER} automountServiceAccountToken", False, True),
    remedy("ray-background-delete", RAY, BACKGROUND, "background", "orphan"),
    remedy("ns-psa-warns", (namespace(), "kubernetes:core/v1:Namespace"), WARN, "restricted", "baseline"),
]
IDS = [f"{each.rule}-{each.type.rpartition(':')[2]}" for each in CASES]


def pack_that_mends(rule: str, **configuration: Any) -> Pack:
    """A pack with one rule at level `remediate`, and all others disabled."""
    return Pack(
        Configuration.model_validate(
            {"environments": {"*": {"level": "disabled", "rules": {rule: "remediate"}}}, **configuration}
        ),
        "prod",
    )


def asked(made: Body, type_: str) -> analyzer_pb2.AnalyzeRequest:
    return analyzer_pb2.AnalyzeRequest(type=type_, urn="urn", name="it", properties=struct(made))


def mended(pack: Pack, made: Body, type_: str) -> Body:
    """The object as the engine continues with it."""
    response = pack.Remediate(asked(made, type_), CONTEXT)
    if not response.remediations:
        return made
    return json_format.MessageToDict(response.remediations[-1].properties)


def violated(pack: Pack, made: Body, type_: str) -> list[str]:
    return names(list(pack.Analyze(asked(made, type_), CONTEXT).diagnostics), analyzer_pb2.REMEDIATE)


def without_seccomp(each: Remedy) -> Body:
    """The object without the field of the remedy. The profile of a pod would apply to its containers too."""
    made = each.without()
    if each.rule == "pod-seccomp":
        put(made, "spec securityContext seccompProfile", MISSING)
    return made


@pytest.mark.parametrize("each", CASES, ids=IDS)
def test_a_remedy_fixes_the_violation_and_changes_nothing_else_and_no_configured_value(each: Remedy) -> None:
    pack, made = pack_that_mends(each.rule), without_seccomp(each)
    assert violated(pack, made, each.type) == [each.rule]
    after = mended(pack, made, each.type)
    assert violated(pack, after, each.type) == []
    put(made, each.at, each.remedied)
    assert after == made
    # The violation blocks, as at level mandatory.
    put(made, each.at, each.violating)
    assert mended(pack, made, each.type) == made
    assert violated(pack, made, each.type) == [each.rule]


@pytest.mark.parametrize("each", CASES, ids=IDS)
def test_unknown_values_and_secrets_are_not_changed(each: Remedy) -> None:
    pack, made = pack_that_mends(each.rule), without_seccomp(each)
    other = {"metadata labels other": UNKNOWN, "metadata annotations other": {**SECRET, "value": "hunter2"}}
    for at, value in other.items():
        put(made, at, value)
    after = mended(pack, made, each.type)
    put(made, each.at, each.remedied)
    assert after == made
    put(made, each.at, UNKNOWN)
    assert mended(pack, made, each.type) == made


def test_every_remedy_has_a_case() -> None:
    assert {each.rule for each in CASES} == set(REMEDIES)


def test_a_secret_that_holds_the_place_is_mended_inside() -> None:
    """Also a list: the Kubernetes provider makes a whole list secret that has one."""
    made = pod()
    spec = made["spec"]
    spec["containers"][0]["securityContext"].pop("allowPrivilegeEscalation")
    made["spec"] = {**SECRET, "value": {**spec, "containers": {**SECRET, "value": spec["containers"]}}}
    after = mended(pack_that_mends("pod-no-privesc"), made, "kubernetes:core/v1:Pod")
    containers = after["spec"]["value"]["containers"]
    assert containers["value"][0]["securityContext"]["allowPrivilegeEscalation"] is False
    assert containers.items() >= SECRET.items()
    assert after["spec"].items() >= SECRET.items()


@pytest.mark.parametrize(
    ("rule", "at", "value"),
    [
        ("pod-no-privesc", f"{C} privileged", True),
        ("pod-no-privesc", f"{C} capabilities add", ["SYS_ADMIN"]),
        ("pod-drop-all", "spec securityContext runAsNonRoot", MISSING),
        ("ray-worker-no-sa-token", f"{WORKER} serviceAccountName", "reader"),
    ],
)
def test_where_something_may_depend_on_it_nothing_is_mended(rule: str, at: str, value: Any) -> None:
    """Kubernetes refuses the change, or a program needs the value."""
    each = next(case for case in CASES if case.rule == rule)
    made = each.without()
    put(made, at, value)
    pack = pack_that_mends(rule)
    assert mended(pack, made, each.type) == made
    assert violated(pack, made, each.type) == [rule]


def test_several_remedies_mend_one_object_and_are_reported() -> None:
    pack = Pack(Configuration.model_validate({"environments": {"*": {"level": "remediate"}}}), "prod")
    made = deployment()
    made["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {}
    request = asked(made, "kubernetes:apps/v1:Deployment")
    remediations = pack.Remediate(request, CONTEXT).remediations
    assert [each.policyName for each in remediations] == ["pod-no-privesc", "pod-drop-all"]
    assert remediations[0].description.startswith("Sets `allowPrivilegeEscalation: false`")
    after = json_format.MessageToDict(remediations[-1].properties)
    container = after["spec"]["template"]["spec"]["containers"][0]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("level", [level for level in Level if level is not Level.REMEDIATE])
def test_no_other_level_mends_and_no_excepted_object(level: Level) -> None:
    pack = Pack(Configuration.model_validate({"environments": {"*": {"level": level}}}), "prod")
    each = CASES[0]
    excepting = pack_that_mends(each.rule, exceptions=[{**EXCEPTION, "rule": each.rule}])
    for other in (pack, excepting):
        assert mended(other, each.without(), each.type) == each.without()


def test_the_engine_gets_the_level_of_each_rule() -> None:
    info = pack_that_mends("pod-seccomp").GetAnalyzerInfo(empty_pb2.Empty(), CONTEXT)
    levels = {each.name: each.enforcementLevel for each in info.policies}
    assert levels["pod-seccomp"] == analyzer_pb2.REMEDIATE
    assert levels["pod-no-host"] == analyzer_pb2.DISABLED


def test_a_place_of_another_shape_is_left_to_the_api_server() -> None:
    made = pod()
    made["spec"]["containers"][0]["securityContext"] = "none"
    assert mended(pack_that_mends("pod-no-privesc"), made, "kubernetes:core/v1:Pod") == made
