"""Every pod template in an object is found. Unknown and secret values are handled as such."""

import copy
from typing import Any

import pytest

from policies.configuration import Configuration
from policies.judge import Judge
from policies.values import UNKNOWN, NotKnownYetError, Object, Secret
from policies.walk import containers, pods
from testbed.policies.bodies import (
    body,
    cron_job,
    deployment,
    job,
    pod,
    ray_cluster,
    ray_job,
    redis,
    template,
    volcano_job,
)


def ray_service() -> dict[str, Any]:
    return body("ray.io/v1", "RayService", spec={"rayClusterConfig": ray_cluster()["spec"]})


def ray_cron_job() -> dict[str, Any]:
    return body("ray.io/v1", "RayCronJob", spec={"jobTemplate": ray_job()["spec"]})


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (pod(), ["spec"]),
        (body("v1", "PodTemplate", template=template()), ["template.spec"]),
        (body("v1", "ReplicationController", spec={"template": template()}), ["spec.template.spec"]),
        (deployment(), ["spec.template.spec"]),
        (redis(), ["spec.template.spec"]),
        ({**deployment(), "kind": "DaemonSet"}, ["spec.template.spec"]),
        ({**deployment(), "kind": "ReplicaSet"}, ["spec.template.spec"]),
        (job(), ["spec.template.spec"]),
        (cron_job(), ["spec.jobTemplate.spec.template.spec"]),
        (volcano_job(), ["spec.tasks[0].template.spec"]),
        (ray_cluster(), ["spec.headGroupSpec.template.spec", "spec.workerGroupSpecs[0].template.spec"]),
        (
            ray_service(),
            [
                "spec.rayClusterConfig.headGroupSpec.template.spec",
                "spec.rayClusterConfig.workerGroupSpecs[0].template.spec",
            ],
        ),
        (
            ray_job(),
            [
                "spec.rayClusterSpec.headGroupSpec.template.spec",
                "spec.rayClusterSpec.workerGroupSpecs[0].template.spec",
                "spec.submitterPodTemplate.spec",
            ],
        ),
        (
            ray_cron_job(),
            [
                "spec.jobTemplate.rayClusterSpec.headGroupSpec.template.spec",
                "spec.jobTemplate.rayClusterSpec.workerGroupSpecs[0].template.spec",
                "spec.jobTemplate.submitterPodTemplate.spec",
            ],
        ),
        (body("example.com/v1", "Deployment", spec={"template": template()}), ["spec.template.spec"]),
    ],
    ids=lambda each: each["kind"] if isinstance(each, dict) else "",
)
def test_pods_are_found(made: dict[str, Any], where: list[str]) -> None:
    found = [".".join(map(str, each.spec.path)) for each in pods(Object(made))]
    assert found == [each.replace("[", ".").replace("]", "") for each in where]


def test_containers_are_found_with_init_containers_and_the_autoscaler() -> None:
    made = ray_cluster()
    made["spec"]["headGroupSpec"]["template"]["spec"]["initContainers"] = [{"name": "first"}]
    assert [each.role for each in containers(Object(made))] == ["init", "container", "autoscaler", "container"]
    made["spec"]["enableInTreeAutoscaling"] = False
    assert "autoscaler" not in [each.role for each in containers(Object(made))]


def test_a_job_on_a_cluster_that_is_there_has_a_submitter_alone() -> None:
    made = ray_job(rayClusterSpec=None, clusterSelector={"ray.io/cluster": "it"})
    assert [each.role for each in pods(Object(made))] == ["submitter"]


def test_what_is_not_known_raises_where_it_is_read_and_not_before() -> None:
    owner = Object({"apiVersion": "v1", "kind": "Pod", "spec": {"a": [1, UNKNOWN], "b": True}})
    assert owner.root.at("spec", "b").value is True
    assert owner.root.at("spec", "a").is_set
    assert owner.root.at("spec", "a", 0).number == 1
    with pytest.raises(NotKnownYetError, match=r"spec\.a\[1\]"):
        _ = owner.root.value
    with pytest.raises(NotKnownYetError):
        owner.root.at("spec", "a", 1, "below")


def test_a_secret_is_read_and_never_shown() -> None:
    owner = Object({"kind": "Secret", "data": Secret({"a": 1, "b": Secret("hunter2")})})
    assert owner.root.at("data", "b").text == "hunter2"
    assert owner.root.at("data", "a").shown() == "[secret]"
    assert "hunter2" not in repr(owner.body)


def secret_everywhere(value: Any) -> Any:
    """The value with every leaf marked as a secret."""
    if isinstance(value, dict):
        return {key: secret_everywhere(each) for key, each in value.items()}
    if isinstance(value, list):
        return [secret_everywhere(each) for each in value]
    return Secret(f"hunter2-{value}") if isinstance(value, str) else Secret(value)


@pytest.mark.parametrize("made", [ray_cluster(), ray_job(), redis(), deployment(), volcano_job()])
def test_no_message_has_the_value_of_a_secret(made: dict[str, Any]) -> None:
    spec = secret_everywhere(copy.deepcopy(made["spec"]))
    report = Judge(Configuration(), "prod").report([Object({**made, "spec": spec}, protected=False)])
    assert report.findings
    assert not [each.message for each in report.findings if "hunter2" in each.message]


def test_a_spec_that_is_not_known_is_found_once_for_each_rule_that_needs_it() -> None:
    report = Judge(Configuration(), "prod").report([Object({**deployment(), "spec": UNKNOWN}, "a.yaml")])
    assert not report.blocked
    of_containers = [each for each in report.findings if each.rule.id == "pod-no-privileged"]
    assert [each.known for each in of_containers] == [False]
    assert of_containers[0].path == ("spec",)
