"""Simulated nodes as the scheduler sees them."""

from pathlib import Path
from typing import Any

from kubernetes import client

from core.nodes import NodePool
from local.nodes import LABELS, apply, manifests
from local.real_node import RealNode
from local.real_node.programs import NODE
from tests.unit.local.conftest import ApiServer


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


GPUS = NodePool(pool="a", count=1, cpu="8", memory="32Gi", gpus=8, gpu_product="A100", labels={"tier": "spot"})


def client_of(api_server: ApiServer) -> client.ApiClient:
    configuration = client.Configuration()
    configuration.host, configuration.proxy = api_server.url, None
    return client.ApiClient(configuration)


def test_an_existing_node_loses_the_gpus_and_labels_that_its_pool_lost(api_server: ApiServer) -> None:
    """Labels of others stay."""
    node = manifests([GPUS])["a-0"]
    node["metadata"]["labels"]["beta.kubernetes.io/os"] = "linux"
    api_server.answers = {
        "GET /api/v1/nodes": {"items": [node]},
        "PATCH /api/v1/nodes/a-0": node,
        "PATCH /api/v1/nodes/a-0/status": node,
    }
    plain = GPUS.model_copy(update={"gpus": 0, "gpu_product": None, "labels": {"zone": "1"}})
    apply(client_of(api_server), [plain])
    _, (_, patch), (_, status) = api_server.got
    new = manifests([plain])["a-0"]["metadata"]
    assert patch["metadata"]["labels"] == {**new["labels"], "nvidia.com/gpu.product": None, "tier": None}
    assert patch["metadata"]["annotations"][LABELS] == new["annotations"][LABELS]
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": None}
    assert status["status"] == {"capacity": amounts, "allocatable": amounts}


def test_the_real_node_loses_the_labels_that_its_pool_lost(tmp_path: Path, api_server: ApiServer) -> None:
    node: dict[str, Any] = {
        "metadata": {
            "name": NODE,
            "labels": {"kubernetes.io/os": "linux", "tier": "spot", "ray-platform.dev/pool": "a"},
            "annotations": {LABELS: "ray-platform.dev/pool tier"},
        },
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    api_server.answers = {f"GET /api/v1/nodes/{NODE}": node, f"PATCH /api/v1/nodes/{NODE}": node}
    pool = GPUS.model_copy(update={"gpu_product": None, "labels": {}})
    assert RealNode(tmp_path).ready(client_of(api_server), [pool])
    [patch] = [body for request, body in api_server.got if request.startswith("PATCH")]
    assert patch["metadata"]["labels"] == {"ray-platform.dev/pool": "a", "tier": None}
