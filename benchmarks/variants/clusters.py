"""The compared RayClusters, as this project renders them."""

from collections.abc import Sequence
from typing import Any

from stacks.load import parse
from stacks.objects.ray_clusters import rendered

NODE = {"pool": "a100", "cpu": 64, "memory": "1000Gi", "gpus": 8}


def _sizes(*sizes: int, idle: str = "60s") -> dict[str, Any]:
    return {"profile": "tiling", "variants": [{"gpus": size, "idleTimeout": idle} for size in sizes]}


CLUSTERS: dict[str, dict[str, Any]] = {
    "all-8": _sizes(8),
    "all-1": _sizes(1),
    "1+8": _sizes(1, 8),
    "4+8": _sizes(4, 8),
    "ado": {"profile": "ado"},
    "tiling": {"profile": "tiling"},
    "tiling, idle 10s": _sizes(1, 2, 4, 8, idle="10s"),
}
"""Settings of `workers` beside the pool, by name. The idleTimeout of the cluster is 60 s."""

MORE_SIZES: dict[str, dict[str, Any]] = {
    "1,2,3,4,6,8": _sizes(1, 2, 3, 4, 6, 8),
    "1 to 8": _sizes(*range(1, 9)),
}
"""For jobs of 1, 2, 4 and 8 GPUs they are equivalent to tiling."""


def ray_cluster(workers: dict[str, Any], nodes: int) -> dict[str, Any]:
    """The RayCluster on this number of nodes."""
    cluster = {
        "name": "training",
        "rayVersion": "2.60.0",
        "image": "rayproject/ray:2.60.0",
        "idleTimeout": "60s",
        "workers": {"pool": "a100", **workers},
    }
    stack = parse({"nodes": [{**NODE, "count": nodes}], "tenants": [{"name": "team-a", "clusters": [cluster]}]})
    tenants: Sequence[Any] = stack.tenants
    body = rendered(stack, tenants[0], tenants[0].clusters[0])
    body["metadata"]["namespace"] = "team-a"
    return body
