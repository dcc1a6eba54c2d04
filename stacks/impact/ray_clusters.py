"""The RayClusters of a stack, as it makes them, by `<namespace>/<name>`. Pure functions."""

from collections.abc import Mapping
from typing import Any

from components.rollout.settings import UpdatesSettings
from core.images import with_mirrors

from ..once import once
from ..rendered import rendered
from ..settings import StackSettings

Body = Mapping[str, Any]


@once
def ray_clusters(stack: "StackSettings") -> Mapping[str, Body]:
    """All RayClusters of a stack, but for what only an update knows: what their keys in Redis begin with."""
    return {
        f"{tenant.namespace_name}/{cluster.name}": with_mirrors(rendered(stack, tenant, cluster), stack.images.mirrors)
        for tenant in stack.tenants
        for cluster in tenant.clusters
    }


def updates(stack: "StackSettings") -> dict[str, "UpdatesSettings"]:
    """How edits reach the pods of each RayCluster that run."""
    return {
        f"{tenant.namespace_name}/{cluster.name}": cluster.updates
        for tenant in stack.tenants
        for cluster in tenant.clusters
    }
