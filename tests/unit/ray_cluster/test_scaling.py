"""The scaling settings: KubeRay's keys, and those of the proposal before KubeRay."""

from typing import Any

import pytest

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from core.nodes import NodePool
from kuberay import OperatorContext, validate

POOLS = (NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8),)
ONE_GROUP = {"workerGroups": [{"groupName": "only", "cpu": 2, "memory": "4Gi"}]}


def spec(**settings: Any) -> dict[str, Any]:
    """The spec of a cluster that the operator accepts."""
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", **ONE_GROUP, **settings}
    body = ray_cluster(valid(entry), POOLS)
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


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
