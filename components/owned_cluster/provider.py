"""Waits, when a RayJob or RayService is deleted, until the keys of its RayClusters are deleted from Redis."""

import sys
import time
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection
from components.dynamic import KeepsInputs, Resource
from components.kubernetes_cluster import cluster_of
from components.ray_cluster.pods import OPTIONS, storage_namespace
from components.ray_cluster.storage_namespace import cleanup_warning

_PAUSE_SECONDS = 2.0


class _Provider(KeepsInputs):
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("clean-up", dict(props))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        for line in cleaned_up(_props):
            sys.stderr.write(f"warning: {line}\n")


@dataclass(frozen=True)
class RedisCleanUpArgs:
    """Arguments of RedisCleanUp."""

    namespace: pulumi.Input[str]

    owner: str
    """Name of the RayJob or RayService."""

    label: str
    """Label of its RayClusters with that name."""

    limit: int
    """The most seconds that KubeRay takes to delete a RayCluster with its keys (pods.deletion_seconds)."""

    connection: Connection = AMBIENT


class RedisCleanUp(Resource, module="ray-platform", name="RedisCleanUp"):
    """The end of the RayClusters of a RayJob or RayService that have tables in Redis.

    The owner depends on this resource, so it is deleted first. KubeRay then deletes its RayClusters, each with a Job
    that needs Redis, its password and a way to it. The deletion of this resource waits for that, so that what it
    depends on stays as long. Then it warns of keys that are left.

    Without fault tolerance in the settings of a RayService this resource is deleted alone, and waits until another
    RayCluster without tables in Redis has taken the place of the running one.
    """

    def __init__(self, name: str, args: RedisCleanUpArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "namespace": args.namespace,
            "owner": args.owner,
            "label": args.label,
            "limit": args.limit,
            **args.connection.inputs(),
        }
        super().__init__(_Provider(), name, inputs, opts)


def cleaned_up(props: dict[str, Any]) -> list[str]:
    """Waits until no RayCluster of the owner has tables in Redis. Returns warnings of keys that are left.

    `props`: the inputs of RedisCleanUp.
    """
    cluster, namespace, owner = cluster_of(props), props["namespace"], props["owner"]
    deadline = time.monotonic() + props["limit"]
    seen: set[str] = set()
    while True:
        try:
            left = _with_tables(cluster, namespace, f"{props['label']}={owner}")
        except ClusterUnreachableError as error:
            return [f"it cannot be determined whether the keys of {namespace}/{owner} are deleted from Redis: {error}"]
        seen |= left
        if not left or time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_SECONDS)
    found = [
        f"RayCluster {namespace}/{name} still exists after {props['limit']:.0f} s, and has tables in Redis: "
        f"RAY{storage_namespace(namespace, owner, name)}@*"
        for name in sorted(left)
    ]
    for name in sorted(seen - left):
        # No other RayCluster ever has this name: all events of it count.
        warning = cleanup_warning(cluster, namespace, name, storage_namespace(namespace, owner, name), "")
        found += [warning] if warning else []
    return found


def _with_tables(cluster: Cluster, namespace: str, label: str) -> set[str]:
    """Names of the RayClusters with the label that have tables in Redis. Raises ClusterUnreachableError."""
    listed = cluster.list("ray.io/v1", "rayclusters", namespace, labels=label) or ()
    return {each["metadata"]["name"] for each in listed if OPTIONS in each["spec"]}
