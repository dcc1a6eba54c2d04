"""Rules on pod templates: one example of each, with its place. tests/differential compares them with the API server."""

from typing import Any

import pytest

from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from kuberay.rules import POD_RULES

RAY = {"name": "ray-head", "image": "rayproject/ray:2.60.0"}

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
