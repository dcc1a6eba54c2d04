"""The scaling settings: KubeRay's keys, and those of the proposal before KubeRay."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from core.nodes import NodePool
from core.problems import Problem, Problems
from kuberay import OperatorContext, validate

POOLS = (NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8),)
ONE_GROUP = {"workerGroups": [{"groupName": "only", "cpu": 2, "memory": "4Gi"}]}


def spec(**settings: Any) -> dict[str, Any]:
    """The spec of a cluster that the operator accepts."""
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", **ONE_GROUP, **settings}
    body = ray_cluster(valid(entry), POOLS)
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


def problems(**settings: Any) -> list[Problem]:
    try:
        spec(**settings)
    except Problems as refused:
        return list(refused.problems)
    except ValidationError as refused:
        [error] = refused.errors()
        return list(error["ctx"]["error"].problems)
    return []


def test_settings_of_the_cluster_apply_to_the_only_worker_group() -> None:
    made = spec(minWorkers=1, maxWorkers=2, initialWorkers=1, autoScalingMode="default", idleTimeoutMinutes=60)
    [group] = made["workerGroupSpecs"]
    assert (group["minReplicas"], group["maxReplicas"], group["replicas"]) == (1, 2, 1)
    assert made["autoscalerOptions"].items() >= {"idleTimeoutSeconds": 3600, "upscalingMode": "Default"}.items()


@pytest.mark.parametrize(
    ("mode", "upscaling"), [("default", "Default"), ("aggressive", "Aggressive"), ("conservative", "Conservative")]
)
def test_a_scaling_mode_is_kuberays_upscaling_mode(mode: str, upscaling: str) -> None:
    assert spec(autoScalingMode=mode)["autoscalerOptions"]["upscalingMode"] == upscaling


@pytest.mark.parametrize(
    ("utilization", "upscaling"),
    [(1, "Default"), (49, "Default"), (50, "Conservative"), (80, "Conservative"), (100, "Conservative")],
)
def test_a_target_utilization_sets_one_of_kuberays_two_modes(utilization: int, upscaling: str) -> None:
    """Ray converted it into an upscaling speed, 1 / fraction - 1. KubeRay has the speed 1, and no limit."""
    assert spec(targetUtilization=utilization)["autoscalerOptions"]["upscalingMode"] == upscaling


@pytest.mark.parametrize("off", [{"autoscaling": False}, {"autoScalingMode": "disabled"}])
def test_without_the_autoscaler_a_group_keeps_its_replicas(off: dict[str, Any]) -> None:
    made = spec(workerGroups=[{**ONE_GROUP["workerGroups"][0], "replicas": 3, "maxReplicas": 3}], **off)
    assert not made.keys() & {"enableInTreeAutoscaling", "autoscalerOptions"}
    assert made["workerGroupSpecs"][0]["replicas"] == 3


def test_a_group_without_bounds_needs_none_without_the_autoscaler() -> None:
    assert spec(autoscaling=False, initialWorkers=2)["workerGroupSpecs"][0]["replicas"] == 2


@pytest.mark.parametrize(
    ("configured", "path", "message"),
    [
        ({"minWorkers": 3, "maxWorkers": 2}, ("minWorkers",), "minWorkers 3 is more than maxWorkers 2: lower"),
        ({"minWorkers": 3, "initialWorkers": 2}, ("minWorkers",), "minWorkers 3 is more than initialWorkers 2"),
        (
            {"workerGroups": [], "maxWorkers": 3},
            ("maxWorkers",),
            "applies to the only worker group, and the cluster has 0",
        ),
        (
            {"workerGroups": [{"groupName": "w", "minReplicas": 1}], "minWorkers": 2},
            ("minWorkers",),
            "worker group 'w' already sets it: remove one of them",
        ),
        (
            {
                "workers": {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 1}]},
                "workerGroups": [],
                "maxWorkers": 2,
            },
            ("maxWorkers",),
            "worker group 'a100-8gpu' already sets it",
        ),
        ({"autoscaling": False, "autoScalingMode": "default"}, ("autoScalingMode",), "has no effect in a cluster"),
        ({"autoScalingMode": "disabled", "idleTimeoutMinutes": 5}, ("idleTimeoutMinutes",), "has no effect"),
        (
            {"autoscaling": False, "workerGroups": [{"groupName": "w", "idleTimeout": "5m"}]},
            ("workerGroups", 0, "idleTimeout"),
            "has no effect in a cluster",
        ),
    ],
)
def test_conflicting_settings_are_refused_at_their_place(configured: Any, path: Any, message: str) -> None:
    [problem] = problems(**configured)
    assert problem.path == path
    assert problem.message.startswith(message)
