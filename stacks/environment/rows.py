"""Resources in the states of an environment's stacks, and the stack that each belongs to. Pure functions.

A state's resources are `resources` of `pulumi stack export`. Their names are set by `stacks.platform` and
`stacks.tenant`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]

PLATFORM = "platform"
"""Name of the Platform component, and prefix of the names of all its children."""

ROOT_TYPE = "pulumi:pulumi:Stack"

PLATFORM_TYPE, QUEUES_TYPE = "ray-platform:index:Platform", "ray-platform:index:Queues"
EXTERNAL_REDIS = "ray-platform:index:ExternalRedis"

_TENANT, _REDIS = "ray-platform:index:Tenant", "ray-platform:index:RedisHa"
_NAMESPACE = f"{PLATFORM}-namespace-"
_OF_A_QUEUE = f"{PLATFORM}-queues-"
_OF_REDIS = f"{PLATFORM}-redis-"


def name_in(urn: str) -> str:
    """The resource's name."""
    return urn.split("::", 3)[3]


def types_in(urn: str) -> list[str]:
    """Types of the resource's parents, the top one first, and its own type last."""
    return urn.split("::", 3)[2].split("$")


def tenants_among(urns: Iterable[str]) -> set[str]:
    """Namespaces of the tenants that have a Tenant component or a namespace among the resources."""
    found = set()
    for urn in urns:
        name, types = name_in(urn), types_in(urn)
        if types == [_TENANT]:
            found.add(name)
        elif types[-1].endswith(":Namespace") and len(types) == 2 and name.startswith(_NAMESPACE):
            found.add(name.removeprefix(_NAMESPACE))
    return found


def namespace_of(row: Row, by_urn: Mapping[str, Row], shared_queues: Iterable[str]) -> str | None:
    """The tenant's namespace that decides which stack has a resource; None: the platform's stack.

    `by_urn`: all resources of its state. `shared_queues`: names of the queues that tenants share.
    """
    above: Row | None = row
    while above:
        name, kind = name_in(above["urn"]), types_in(above["urn"])[-1]
        if kind == _TENANT:
            return name
        if kind == _REDIS:
            return name.removeprefix(_OF_REDIS)
        above = by_urn.get(above.get("parent", ""))
    name, types = name_in(row["urn"]), types_in(row["urn"])
    kind = types[-1].rpartition(":")[2]
    if kind == "Namespace" and name.startswith(_NAMESPACE) and len(types) == 2:
        return name.removeprefix(_NAMESPACE)
    if kind == "Secret" and EXTERNAL_REDIS in types:
        return name.removeprefix(f"{_OF_REDIS}secret-")
    if QUEUES_TYPE in types and kind == "LocalQueue":
        return name.rpartition("/")[2]
    if QUEUES_TYPE in types and kind in ("Queue", "ClusterQueue", "QueueGuard"):
        queue = name.removeprefix(_OF_A_QUEUE)
        queue = queue.removesuffix("-guard") if kind == "QueueGuard" else queue
        return None if queue in shared_queues else queue
    return None
