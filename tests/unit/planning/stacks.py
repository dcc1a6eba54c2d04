"""Stacks to plan."""

from typing import Any

from stacks.load import parse
from stacks.settings import StackSettings

A100 = {"pool": "a100", "count": 4, "cpu": 64, "memory": "1000Gi", "gpus": 8, "gpuProduct": "NVIDIA-A100-SXM4-80GB"}


def cluster(name: str, **more: Any) -> dict[str, Any]:
    """A RayCluster whose workers may fill all nodes."""
    settings = {
        "rayVersion": "2.60.0",
        "image": "rayproject/ray:2.60.0",
        "workers": {"pool": "a100", "profile": "tiling"},
    }
    return {"name": name, **settings, **more}


def tenant(name: str, *clusters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tenant, with one RayCluster unless others are passed."""
    return {"name": name, "clusters": list(clusters) or [cluster("training")], **more}


def stack(*tenants: dict[str, Any], **more: Any) -> StackSettings:
    """A stack on four nodes of eight GPUs."""
    return parse({"nodes": [A100], "tenants": list(tenants), **more})


def always(gpus: int, number: int) -> dict[str, Any]:
    """`number` workers that always run."""
    return {"pool": "a100", "variants": [{"gpus": gpus, "minReplicas": number, "maxReplicas": number}]}
