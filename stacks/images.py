"""The container images that a stack's pods are made from."""

from collections.abc import Iterator
from typing import Any

from components.ray_cluster.manifests import ray_cluster

from .settings import StackSettings

CONTAINERS = frozenset({"containers", "initContainers"})
"""Where a pod spec names images."""


def images_of(stack: StackSettings) -> set[str]:
    """All images that the pods of a stack name, as they name them.

    What KubeRay adds to pods has the image of Ray's container beside it. The operator's is the one of KubeRay's own
    kustomize tree unless the settings name another; a tree of another location is not rendered for it.
    """
    found = {_operator(stack)} if stack.operator.install == "manifests" else set()
    for tenant in stack.tenants:
        for cluster in tenant.clusters:
            found.update(_named(ray_cluster(cluster, stack.nodes)))
    return found


def _operator(stack: StackSettings) -> str:
    return stack.operator.image or f"quay.io/kuberay/operator:v{stack.operator.version}"


def _named(body: Any) -> Iterator[str]:
    """The images in a body, wherever it has pods."""
    if isinstance(body, list):
        for item in body:
            yield from _named(item)
    elif isinstance(body, dict):
        for key, value in body.items():
            # The autoscaler is a container that KubeRay writes; its options are no pod spec, but name an image alike.
            containers = value if key in CONTAINERS else [value] if key == "autoscalerOptions" else []
            yield from (container["image"] for container in containers if container.get("image"))
            yield from _named(value)
