"""Formats as Go parses them, features of releases, and rules on pod templates. tests/differential compares many more
with Go."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from core.body import Body
from kuberay import OperatorContext, validate
from kuberay.cron import cron_job_fault, schedule_fault
from kuberay.formats import duration, generic_version, integer, is_mapping, is_qualified_name, older, semver_numbers
from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from kuberay.rules import POD_RULES
from tests.unit.kuberay.manifests import edited, manifest


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (duration, "1h30m", 5400 * 10**9),
        (duration, "-5m", -300 * 10**9),
        (duration, "1.5s", 15 * 10**8),
        (duration, "0", 0),
        *((duration, text, None) for text in ("5", "1d")),
        (generic_version, "v2.52", (2, 52)),
        (generic_version, "2.52.0rc1", (2, 52, 0)),
        *((generic_version, text, None) for text in ("2", "02.1", "nightly")),
        (semver_numbers, "2.6", (2, 6, 0)),
        (semver_numbers, "2.6.0-rc.1", None),
        *((integer, text, number) for text, number in (("+5", 5), ("-5", -5))),
        *((integer, text, None) for text in ("1_0", "٣", str(2**63))),
        *((is_qualified_name, text, True) for text in ("team", "ray.io/team")),
        *((is_qualified_name, text, False) for text in ("/team", "a/b/c")),
        *((is_mapping, text, False) for text in ("- a", "a: [")),
    ],
)
def test_a_text_is_read_as_go_reads_it(read: Callable[[str], Any], text: str, expected: Any) -> None:
    assert read(text) == expected


def test_versions_of_unequal_length_are_compared_as_with_zeros() -> None:
    assert older((2, 51), than=(2, 52, 0))
    assert not older((2, 52), than=(2, 52, 0))
    assert OperatorContext("1.10.0").since("1.9")
    assert OperatorContext("1.6.2").since("1.6")
    assert not OperatorContext("1.5.1").since("1.6")


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        *((fine, None) for fine in ("@daily", "@every 1h", "*/5 0-6,22 ? jan-MAR mon", "TZ=UTC 0 3 * * *")),
        ("* * * *", "it has 4 fields, not the five of minute, hour, day of month, month and day of week"),
        ("0 24 * * *", "'24' is not an hour from 0 to 23"),
        ("0 3 * * 7", "'7' is not a day of the week from 0 to 6"),
        ("@every day", "'day' is not a duration such as 1h30m"),
    ],
)
def test_what_is_wrong_with_a_schedule(schedule: str, fault: str | None) -> None:
    assert schedule_fault(schedule) == fault


@pytest.mark.parametrize(
    ("schedule", "accepted"),
    [
        *((each, True) for each in ("@every 1h", "0 0 29 2 *", "0 0 31 2 mon", "0 0 */30 2 5", "0 0 31 1,4 *")),
        *((each, False) for each in ("0 0 30 2 *", "0 0 31 4,6 ?", ", * * * *", "0 0 * * ,")),
        *((each, False) for each in ("TZ=UTC 0 3 * * *", "0 3")),
    ],
)
def test_a_schedule_of_a_cron_job_is_one_that_kubernetes_takes_and_that_a_day_matches(
    schedule: str, accepted: bool
) -> None:
    assert (cron_job_fault(schedule) is None) == accepted


def test_a_mapping_is_looked_at_without_repeating_what_its_anchors_repeat() -> None:
    names = [f"n{number}" for number in range(60)]
    repeats = (f"{name}: &{name} [*{before}, *{before}]\n" for before, name in itertools.pairwise(names))
    assert is_mapping("n0: &n0 [x, x]\n" + "".join(repeats))


GRPC = {
    "spec rayClusterConfig headGroupSpec template spec containers 0 ports": [{"name": "serve-grpc", "containerPort": 9}]
}
KEPT = {"spec deletionStrategy deletionRules": [{"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}]}


@pytest.mark.parametrize(
    ("kind", "edits", "rule"),
    [("RayService", GRPC, "serve-port"), ("RayJob", KEPT, "deletion-feature-gate")],
)
def test_what_1_6_takes_1_5_may_refuse(kind: str, edits: dict[str, Any], rule: str) -> None:
    body = edited(manifest(kind), edits)
    assert [problem.rule for problem in validate(body, OperatorContext("1.5.1"))] == [rule]
    assert validate(body, OperatorContext("1.6.2")) == []


@pytest.mark.parametrize("version", ["1.5.1", "1.6.2", "1.7.0"])
@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_what_all_releases_know_passes(kind: str, version: str) -> None:
    assert validate(manifest(kind), OperatorContext(version)) == []


def test_a_misspelled_field_is_found_for_an_older_operator_too() -> None:
    body = edited(manifest("RayCluster"), {"spec colour": "red"})
    assert [problem.rule for problem in validate(body, OperatorContext("1.5.1"))] == ["unknown-field"]


RAY = {"name": "ray-head", "image": "rayproject/ray:2.60.0"}

RESTART = {"action": "Restart", "exitCodes": {"operator": "In"}}
FILE = {"key": "A", "path": "variables"}
CLAIM = {"persistentVolumeClaim": {"claimName": "models"}}

EXAMPLES: dict[str, tuple[dict[str, Any], str, str]] = {
    "pod-field-missing": (
        {"containers": [{"name": "ray-head"}]},
        "spec.containers.0.image",
        "'image' is missing: add it",
    ),
    "pod-value": (
        {"containers": [RAY], "tolerations": [{"key": "gpu", "operator": "Is"}]},
        "spec.tolerations.0.operator",
        "'Is' is not accepted by the API server: use Equal or Exists",
    ),
    "pod-reference": (
        {
            "containers": [{**RAY, "volumeMounts": [{"name": "model", "mountPath": "/models"}]}],
            "volumes": [{"name": "models", **CLAIM}],
        },
        "spec.containers.0.volumeMounts.0.name",
        "the pod has no volume 'model': did you mean 'models'?",
    ),
    "pod-duplicate": (
        {"containers": [RAY], "initContainers": [RAY]},
        "spec.initContainers.0.name",
        "the name 'ray-head' is not unique: remove it, or set another",
    ),
    "pod-conflict": (
        {"containers": [RAY], "volumes": [{"name": "models", "emptyDir": {}, **CLAIM}]},
        "spec.volumes.0.persistentVolumeClaim",
        "volume 'models' has both emptyDir and persistentVolumeClaim: keep one, or make two volumes",
    ),
    "whole-devices": (
        {"containers": [{**RAY, "resources": {"limits": {"nvidia.com/gpu": "500m"}}}]},
        "spec.containers.0.resources.limits.nvidia.com/gpu",
        "container 'ray-head' has nvidia.com/gpu 500m, which is not a whole number: set a whole number",
    ),
    "request-within-limit": (
        {"containers": [{**RAY, "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "3"}}}]},
        "spec.containers.0.resources",
        "container 'ray-head' requests cpu 3, more than its limit of 2: lower the request or raise the limit",
    ),
}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_violation_is_reported_with_its_place(rule: str) -> None:
    spec, place, message = EXAMPLES[rule]
    [problem] = problems_of_template({"spec": spec}, ())
    assert (problem.rule, ".".join(map(str, problem.path)), problem.message) == (rule, place, message)


def test_each_rule_has_an_example() -> None:
    of_ray = {f"ray-start-{each}" for each in ("option", "value", "gpus", "memory")}
    assert {*EXAMPLES, "pod-security", *of_ray} == set(POD_RULES)


def test_with_the_nodes_network_each_port_is_a_port_of_the_node() -> None:
    ports = [{"name": "metrics", "containerPort": 8080}, {"name": "dashboard", "containerPort": 8080}]
    template = {"spec": {"containers": [{**RAY, "ports": ports}]}}
    assert list(problems_of_template(template, ())) == []
    [problem] = problems_of_template({"spec": {**template["spec"], "hostNetwork": True}}, ())
    assert problem.message == "the port of the node 8080 is not unique: remove it, or set another"


def test_a_level_of_pod_security_refuses_what_its_standard_forbids() -> None:
    template = {"spec": {"containers": [RAY], "volumes": [{"name": "disk", "hostPath": {"path": "/mnt"}}]}}
    assert list(violations(template, (), "privileged")) == []
    [problem] = violations(template, ("template",), "baseline")
    assert problem.path == ("template", "spec", "volumes", 0, "hostPath")
    assert problem.message == (
        "Pod Security level 'baseline' refuses the pod: volume 'disk' mounts files of the node. Use a claim or an "
        "emptyDir, or choose another podSecurity"
    )
    assert len(list(violations(template, (), "restricted"))) == 5


def test_containers_of_an_operator_count() -> None:
    template = {"spec": {"containers": [RAY]}}
    beside = [(("options",), {"name": "autoscaler", "securityContext": {"privileged": True}})]
    [problem] = violations(template, (), "baseline", beside)
    assert problem.path == ("options", "securityContext", "privileged")


@pytest.mark.parametrize(
    ("init", "fields", "places"),
    [
        (False, {"restartPolicy": "Sometimes"}, ["restartPolicy"]),
        (False, {"restartPolicyRules": [RESTART]}, ["restartPolicy"]),
        (False, {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}, ["restartPolicyRules"]),
        (
            False,
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "x"}}],
            },
            ["restartPolicyRules"] * 2,
        ),
        (
            False,
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [{**RESTART, "exitCodes": {"operator": "In", "values": [0] * 256}}] * 21,
            },
            ["restartPolicyRules"] * 22,
        ),
        (
            True,
            {
                "restartPolicy": "Always",
                "restartPolicyRules": [RESTART],
            },
            ["restartPolicyRules"],
        ),
        (True, {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}, ["resizePolicy"]),
        (True, {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}, []),
        (False, {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}, []),
        (False, {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {**FILE, "volumeName": "files"}}}]}, []),
        (False, {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {**FILE, "volumeName": "disk"}}}]}, ["env"]),
        (False, {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {**FILE, "volumeName": "none"}}}]}, ["env"]),
    ],
)
def test_what_kubernetes_1_36_refuses_of_containers(init: bool, fields: Body, places: list[str]) -> None:
    kind = "initContainers" if init else "containers"
    volumes = [{"name": "files"}, {"name": "disk", "hostPath": {"path": "/mnt"}}]
    spec = {"containers": [RAY], "volumes": volumes, "restartPolicy": "Always"}
    spec[kind] = [{**RAY, "name": "it", **fields}]
    found = [problem.path for problem in problems_of_template({"spec": spec}, ())]
    assert [path[:4] for path in found] == [("spec", kind, 0, place) for place in places]


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"hostnameOverride": "ray.example.com"}, []),
        ({"hostnameOverride": "A"}, ["hostnameOverride"]),
        ({"hostnameOverride": "a" * 65}, ["hostnameOverride"]),
        ({"hostnameOverride": "a", "hostNetwork": True}, ["hostnameOverride"]),
        ({"hostnameOverride": "a", "setHostnameAsFQDN": True}, ["hostnameOverride"]),
        ({"dnsConfig": {"nameservers": ["10.0.0.1", "2001:db8::1"]}}, []),
        ({"dnsConfig": {"nameservers": ["10.0.0.01", "::ffff:10.0.0.1"]}}, ["dnsConfig"] * 2),
    ],
)
def test_what_kubernetes_1_36_refuses_of_pods(fields: Body, places: list[str]) -> None:
    found = [problem.path for problem in problems_of_template({"spec": {"containers": [RAY], **fields}}, ())]
    assert [path[1] for path in found] == places
