"""Simulated nodes as the scheduler sees them."""

import pytest

from core.nodes import NodePool
from local.nodes import manifests

pytestmark = pytest.mark.unit


def test_a_pool_becomes_the_configured_number_of_nodes_of_its_size() -> None:
    pool = NodePool(pool="a100", count=2, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB")
    nodes = manifests([pool])
    assert list(nodes) == ["a100-0", "a100-1"]
    allocatable = {"cpu": "64", "memory": "1000Gi", "pods": "110", "nvidia.com/gpu": "8"}
    assert nodes["a100-1"]["status"]["allocatable"] == allocatable
    assert nodes["a100-1"]["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"


def test_nodes_of_a_pool_without_gpus_have_no_gpu_resource_or_label() -> None:
    node = manifests([NodePool(pool="cpu", count=1, cpu="16", memory="64Gi")])["cpu-0"]
    assert "nvidia.com/gpu" not in node["status"]["capacity"]
    assert "nvidia.com/gpu.product" not in node["metadata"]["labels"]


def test_taints_and_labels_of_the_pool_are_on_its_nodes() -> None:
    pool = NodePool.model_validate(
        {
            "pool": "spot",
            "count": 1,
            "cpu": "8",
            "memory": "32Gi",
            "labels": {"tier": "spot"},
            "taints": [{"key": "spot", "value": "true"}],
        }
    )
    node = manifests([pool])["spot-0"]
    assert node["metadata"]["labels"]["tier"] == "spot"
    assert node["spec"]["taints"] == [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
