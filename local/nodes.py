"""Simulated nodes: plain Node objects made from the stack's own `nodes`; KWOK keeps them Ready and plays their pods."""

from collections.abc import Iterable
from typing import Any

from kubernetes import client, utils

from local.control_plane import FAKE_NODE
from stacks.settings import NodePool

POOL_LABEL = "ray-platform.dev/pool"
"""Label of the nodes that the rehearsal made: the pool that they belong to."""

PODS_PER_NODE = "110"
"""Kubernetes' own default for a kubelet (KubeletConfiguration maxPods)."""


def manifests(pools: Iterable[NodePool]) -> dict[str, dict[str, Any]]:
    """Node objects by name: `<pool>-0`, `<pool>-1` and so on, with the pool's CPUs, memory, GPUs, labels and taints."""
    return {
        f"{pool.pool}-{index}": _node(pool, f"{pool.pool}-{index}") for pool in pools for index in range(pool.count)
    }


def _node(pool: NodePool, name: str) -> dict[str, Any]:
    capacity = {"cpu": pool.cpu, "memory": pool.memory, "pods": PODS_PER_NODE}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        POOL_LABEL: pool.pool,
        **pool.labels,
    }
    if pool.gpus:
        capacity["nvidia.com/gpu"] = str(pool.gpus)
    if pool.gpu_product:
        labels["nvidia.com/gpu.product"] = pool.gpu_product
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(FAKE_NODE)},
        "spec": {"taints": [taint.model_dump() for taint in pool.taints]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def live(api: client.ApiClient) -> list[dict[str, Any]]:
    """The simulated nodes that the cluster has, as the API server shows them."""
    nodes = api.sanitize_for_serialization(client.CoreV1Api(api).list_node(label_selector=POOL_LABEL))
    found: list[dict[str, Any]] = nodes["items"]
    return found


def ready(api: client.ApiClient, count: int) -> bool:
    """Whether there are that many simulated nodes and all of them are Ready."""
    found = live(api)
    conditions = [
        {condition["type"]: condition["status"] for condition in node["status"].get("conditions", [])} for node in found
    ]
    return len(found) == count and all(condition.get("Ready") == "True" for condition in conditions)


def apply(api: client.ApiClient, pools: Iterable[NodePool]) -> int:
    """Make the cluster's simulated nodes those of the stack: add, change, remove. Returns how many there are."""
    core = client.CoreV1Api(api)
    wanted = manifests(pools)
    there = {node["metadata"]["name"] for node in live(api)}
    for name in there - wanted.keys():
        core.delete_node(name)
    for name, body in wanted.items():
        if name in there:
            core.patch_node(name, {"metadata": body["metadata"], "spec": body["spec"]})
        else:
            utils.create_from_dict(api, body)
        # The API server ignores the status of a created Node; kubelets write it through the subresource, and so here.
        core.patch_node_status(name, {"status": body["status"]})
    return len(wanted)
