"""The RayClusters of a stack, as the program creates them, by `<namespace>/<name>`. Pure functions."""

from collections.abc import Mapping
from typing import Any

from components.rollout.settings import UpdatesSettings

from .. import render
from ..settings import StackSettings

Body = Mapping[str, Any]


def ray_clusters(stack: StackSettings) -> Mapping[str, Body]:
    """All RayClusters of a stack, without values that only an update knows: the prefixes of their keys in Redis."""
    return {name: each.body for (_, name), each in render.ray_clusters(stack).items()}


def updates(stack: StackSettings) -> dict[str, UpdatesSettings]:
    """How edits reach the running pods of each RayCluster."""
    return {
        f"{tenant.namespace_name}/{cluster.name}": cluster.updates
        for tenant in stack.tenants
        for cluster in tenant.clusters
    }
