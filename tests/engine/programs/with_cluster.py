"""A Kubernetes cluster, and Ray on it: the kubeconfig is known once the cluster has been created."""

from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

from ray_platform import (
    NodePool,
    OperatorSettings,
    RayClusterSettings,
    RayPlatform,
    RayPlatformArgs,
    StackSettings,
    TenantSettings,
    WorkersSettings,
)


class Creation(ResourceProvider):
    """Stands for a cloud: the cluster has its kubeconfig in a file."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("cluster", {**props, "kubeconfig": _kubeconfig(props)})

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=any(olds[key] != news[key] for key in ("file", "comment")))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({**news, "kubeconfig": _kubeconfig(news)})


def _kubeconfig(props: dict[str, Any]) -> str:
    return f"{Path(props['file']).read_text()}# {props['comment']}\n"


class Kubernetes(Resource, module="cloud", name="Kubernetes"):
    """A cluster."""

    kubeconfig: pulumi.Output[str]


config = pulumi.Config()
given = {"file": config.require("kubeconfig"), "comment": config.get("comment") or "first", "kubeconfig": None}
cluster = Kubernetes(Creation(), "cluster", given, pulumi.ResourceOptions(additional_secret_outputs=["kubeconfig"]))
training = RayClusterSettings(
    name="training", ray_version="2.60.0", image="rayproject/ray:2.60.0", workers=(WorkersSettings(pool="a100"),)
)
settings = StackSettings(
    operator=OperatorSettings(version="1.6.2"),
    nodes=(NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB"),),
    tenants=(TenantSettings(name="team-a", allow_delete=True, clusters=(training,)),),
)
RayPlatform("ray", RayPlatformArgs(settings, kubeconfig=cluster.kubeconfig))
