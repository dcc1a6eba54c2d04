"""Settings in KubeRay's syntax: worker groups, pod templates, overrides."""

from typing import Any

import pytest

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from core.nodes import NodePool
from core.problems import Problems
from kuberay import OperatorContext, validate

POOLS = (
    NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB"),
    NodePool(pool="cpu", count=3, cpu="32", memory="128Gi", labels={"role": "cpu"}),
)
SMALL = {"groupName": "small", "cpu": 2, "memory": "4Gi"}


def spec(**settings: Any) -> dict[str, Any]:
    """The spec of a cluster that the operator accepts."""
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", **settings}
    body = ray_cluster(valid(entry), POOLS)
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


def group(**settings: Any) -> dict[str, Any]:
    [rendered] = spec(workerGroups=[{**SMALL, **settings}])["workerGroupSpecs"]
    return dict(rendered)


def refused(**settings: Any) -> list[tuple[Any, str]]:
    with pytest.raises(Problems) as raised:
        spec(**settings)
    return [(problem.path, problem.message) for problem in raised.value.problems]


def test_a_group_has_only_its_configured_values() -> None:
    amounts = {"cpu": "2", "memory": "4Gi"}
    container = {
        "name": "ray-worker",
        "image": "ray:2.60.0",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": amounts, "requests": amounts},
    }
    assert spec(workerGroups=[SMALL], podDefaults="none")["workerGroupSpecs"] == [
        {
            "groupName": "small",
            "minReplicas": 0,
            "rayStartParams": {},
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }
    ]


def test_all_settings_of_a_group_are_rendered() -> None:
    made = group(
        replicas=2,
        minReplicas=1,
        maxReplicas=3,
        numOfHosts=4,
        gpus=1,
        image="other:2.60.0",
        env={"A": 1},
        rayStartParams={"num-cpus": "1"},
        labels={"zone": "z"},
        idleTimeout="90s",
    )
    container = made["template"]["spec"]["containers"][0]
    assert [made[key] for key in ("replicas", "minReplicas", "maxReplicas", "numOfHosts")] == [2, 1, 3, 4]
    assert (made["rayStartParams"], made["labels"], made["idleTimeoutSeconds"]) == (
        {"num-cpus": "1"},
        {"zone": "z"},
        90,
    )
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}
    assert (container["image"], container["env"][-1]) == ("other:2.60.0", {"name": "A", "value": "1"})


def test_a_group_on_a_pool_selects_its_nodes_and_gets_a_share_of_one() -> None:
    [made] = spec(workerGroups=[{"groupName": "half", "pool": "a100", "gpus": 4}])["workerGroupSpecs"]
    pod = made["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "30", "memory": "468Gi", "nvidia.com/gpu": "4"}
    assert "nodeAffinity" in pod["affinity"]


def test_configured_groups_are_added_to_those_of_a_pool() -> None:
    made = spec(workers={"pool": "cpu"}, workerGroups=[SMALL])["workerGroupSpecs"]
    assert [each["groupName"] for each in made] == ["cpu-cpu", "small"]


def test_a_cluster_may_be_a_head_alone() -> None:
    assert spec()["workerGroupSpecs"] == []


def test_a_pod_template_is_merged_over_the_derived_one() -> None:
    template = {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {
            "priorityClassName": "high",
            "containers": [
                {"name": "ray-worker", "resources": {"limits": {"ephemeral-storage": "1Gi"}}},
                {"name": "sidecar", "image": "side:1"},
            ],
        },
    }
    made = group(podTemplate=template)["template"]
    ray, sidecar = made["spec"]["containers"]
    assert (made["metadata"]["annotations"], made["spec"]["priorityClassName"]) == ({"a": "b"}, "high")
    assert ray["resources"]["limits"] == {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "1Gi"}
    assert (sidecar["name"], sidecar["image"]) == ("sidecar", "side:1")


def test_pod_templates_of_a_pool_are_for_all_sizes_and_those_of_a_size_for_it_alone() -> None:
    workers = {
        "pool": "a100",
        "variants": [{"gpus": 1}, {"gpus": 8, "podTemplate": {"spec": {"priorityClassName": "whole"}}}],
        "podTemplate": {"spec": {"priorityClassName": "any", "hostIPC": True}},
    }
    pods = [each["template"]["spec"] for each in spec(workers=workers)["workerGroupSpecs"]]
    assert [pod["priorityClassName"] for pod in pods] == ["any", "whole"]
    assert all(pod["hostIPC"] for pod in pods)


def test_the_head_has_its_own_image_labels_and_template() -> None:
    template = {"spec": {"containers": [{"name": "ray-head", "ports": [{"containerPort": 9090, "name": "mine"}]}]}}
    head = spec(head={"image": "head:2.60.0", "labels": {"zone": "z"}, "podTemplate": template})["headGroupSpec"]
    container = head["template"]["spec"]["containers"][0]
    assert (head["labels"], container["image"]) == ({"zone": "z"}, "head:2.60.0")
    assert [port["containerPort"] for port in container["ports"]] == [6379, 8265, 10001, 8080, 8000, 9090]


def test_a_secret_reaches_a_container_by_reference() -> None:
    reference = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    template = {"spec": {"containers": [{"name": "ray-worker", "env": [reference]}]}}
    assert group(podTemplate=template)["template"]["spec"]["containers"][0]["env"][-1] == reference


def test_overrides_can_remove_any_field() -> None:
    without_ports = {"name": "ray-head", "ports": [{"$patch": "replace"}]}
    made = spec(
        workers={"pool": "a100"},
        overrides={
            "autoscalerOptions": None,
            "headGroupSpec": {"template": {"spec": {"restartPolicy": None, "containers": [without_ports]}}},
            "workerGroupSpecs": [{"groupName": "a100-1gpu", "$patch": "delete"}],
        },
    )
    pod = made["headGroupSpec"]["template"]["spec"]
    assert "autoscalerOptions" not in made
    assert "restartPolicy" not in pod
    assert pod["containers"][0]["ports"] == []
    assert [each["groupName"] for each in made["workerGroupSpecs"]] == ["a100-2gpu", "a100-4gpu", "a100-8gpu"]


@pytest.mark.parametrize(
    ("configured", "field", "message"),
    [
        (
            {"minReplicas": 2, "maxReplicas": 1},
            ("minReplicas",),
            "minReplicas 2 is more than maxReplicas 1: lower minReplicas or raise maxReplicas",
        ),
        (
            {"pool": "cpu", "cpu": 33},
            ("cpu",),
            "worker group 'small' has cpu 33, more than a node of pool 'cpu' has (32)",
        ),
        ({"pool": "cpu", "gpus": 1}, ("gpus",), "it has 1 gpus, and a node of pool 'cpu' has 0: lower it"),
        (
            {"podTemplate": {"spec": {"containers": [{"image": "i"}]}}},
            ("podTemplate", "spec", "containers", 0),
            "has no name, which identifies the item",
        ),
    ],
)
def test_an_invalid_group_is_refused_at_its_place(configured: dict[str, Any], field: Any, message: str) -> None:
    [(path, text)] = refused(workerGroups=[{**SMALL, **configured}])
    assert path == ("workerGroups", 0, *field)
    assert text.startswith(message)


def test_a_name_is_used_once() -> None:
    [(path, text)] = refused(workerGroups=[SMALL, SMALL])
    assert path == ("workerGroups", 1)
    assert text == "worker group name small is used twice: give each group its own name"


def test_all_problems_are_reported_at_once() -> None:
    wrong = refused(
        head={"pool": "x"}, workers={"pool": "y"}, workerGroups=[{**SMALL, "pool": "z"}], overrides={"$patch": "x"}
    )
    assert [path for path, _ in wrong] == [
        ("head", "pool"),
        ("workers", 0, "pool"),
        ("workerGroups", 0, "pool"),
        ("overrides", "$patch"),
    ]
