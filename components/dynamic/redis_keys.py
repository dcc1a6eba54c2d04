"""The keys of RayClusters in Redis.

A RayCluster has a prefix of its own, created with it and never reused (StorageNamespace). The deletion of a RayJob or
RayService waits until the keys of its RayClusters are deleted (RedisCleanUp). Both warn of keys that are left.
"""

import datetime
import secrets
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection
from components.dynamic import Provider, Resource
from components.kubernetes_cluster import cluster_of
from components.ray_cluster.pods import OPTIONS, storage_namespace
from components.ray_cluster.readiness import when

_RANDOM_BYTES = 5
"""Enough that a cluster does not reuse the keys of an earlier one of its name: the chance is one in 10^12."""


class StorageNamespaceProvider(Provider):
    """Creates a name, and reports at its deletion what is left."""

    replacing = ("namespace", "cluster")

    def create(self, props: dict[str, Any]) -> CreateResult:
        live = _live(props)
        name, made = _kept(live) if live else (None, None)
        if name is None or not name.startswith(storage_namespace(props["namespace"], props["cluster"], "")):
            name = storage_namespace(props["namespace"], props["cluster"], secrets.token_hex(_RANDOM_BYTES))
            made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return CreateResult(name, {**props, "name": name, "made": made})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        moved = self.moved(_olds, _news)
        gone = not moved and _was_deleted(_olds)
        # The deletion uses the stored connection.
        connects = _olds.get("connection") != _news.get("connection")
        return DiffResult(changes=bool(moved or gone or connects), replaces=moved or (["cluster"] if gone else []))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({**_news, "name": _olds["name"], "made": _olds["made"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        if left := cleanup_warning(cluster_of(_props), _props["namespace"], _props["cluster"], _id, _props["made"]):
            sys.stderr.write(f"warning: {left}\n")


def _was_deleted(props: dict[str, Any]) -> bool:
    """Whether the RayCluster of the keys was deleted outside of Pulumi; False if that is not known."""
    try:
        return _live(props) is None
    except ClusterUnreachableError:
        return False


def _live(props: dict[str, Any]) -> dict[str, Any] | None:
    """The RayCluster; None if it does not exist or is being deleted. Raises ClusterUnreachableError."""
    live = cluster_of(props).get("ray.io/v1", "rayclusters", props["namespace"], props["cluster"])
    return None if live is None or live["metadata"].get("deletionTimestamp") else live


def _kept(live: dict[str, Any]) -> tuple[str | None, str | None]:
    """The key prefix of a live RayCluster and its creation time. A stack that has lost its state reads them again."""
    options = live["spec"].get("gcsFaultToleranceOptions") or {}
    return options.get("externalStorageNamespace"), live["metadata"]["creationTimestamp"]


@dataclass(frozen=True)
class StorageNamespaceArgs:
    namespace: pulumi.Input[str]

    cluster: str
    """Name of the RayCluster."""

    connection: Connection = AMBIENT


class StorageNamespace(Resource, module="ray-platform", name="StorageNamespace"):
    """The prefix of a RayCluster's keys in Redis, unique for each RayCluster that is created.

    The RayCluster depends on this resource, so the RayCluster is deleted first. The deletion of this resource then
    warns of keys that are left in Redis. If somebody else has deleted the RayCluster, this resource is replaced, so
    that the next RayCluster does not read keys of the deleted one.

    Outputs:
        name: the storage namespace.
    """

    name: pulumi.Output[str]

    def __init__(self, name: str, args: StorageNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {"namespace": args.namespace, "cluster": args.cluster, **args.connection.inputs()}
        super().__init__(StorageNamespaceProvider(), name, {**inputs, "name": None, "made": None}, opts)


_FORCED = "ForceDeletedStuckCluster"
"""Reason of the operator's event after it gave up (KubeRay 1.6.2, raycluster_controller.go:
forceRemoveGCSFTFinalizer)."""

_FAILED = ("BackoffLimitExceeded", "DeadlineExceeded")
"""Reasons of the Job controller's events for a Job that failed (k8s.io/api/batch/v1, JobReason...)."""


def cleanup_warning(cluster: Cluster, namespace: str, name: str, keys: str, since: str) -> str | None:
    """A warning about the keys of a RayCluster that has been deleted; None if they are deleted, too.

    `keys`: its storage namespace. `since`: its creation time, RFC 3339; older events are those of another cluster.
    """
    try:
        events = cluster.list("v1", "events", namespace) or ()
    except ClusterUnreachableError as error:
        return _warning(namespace, name, keys, f"it cannot be determined whether Redis was cleaned up: {error}")
    why = failure_reason([event for event in events if when(event) >= since], name)
    return _warning(namespace, name, keys, why) if why else None


def failure_reason(events: Iterable[Mapping[str, Any]], cluster: str) -> str | None:
    """Why KubeRay did not clean up after that cluster; None if no event reports that."""
    reason_of_job = None
    for event in events:
        about, reason = event["involvedObject"], event.get("reason")
        if about.get("kind") == "RayCluster" and about.get("name") == cluster and reason == _FORCED:
            return str(event["message"])
        if about.get("kind") == "Job" and _cleans_up(str(about.get("name")), cluster) and reason in _FAILED:
            reason_of_job = f"Job {about['name']} failed: {event['message']}"
    return reason_of_job


def _cleans_up(job: str, cluster: str) -> bool:
    """Whether a Job cleans up after the cluster. KubeRay cuts names at their beginning to 63 characters, and may change
    the first one (util.go: CheckLabel)."""
    return job[-62:] == f"{cluster}-redis-cleanup"[-62:]


def _warning(namespace: str, cluster: str, keys: str, why: str) -> str:
    return (
        f"RayCluster {namespace}/{cluster} is deleted, and its keys may remain in Redis: RAY{keys}@*. No other "
        f"RayCluster uses them; docs/fault-tolerance.md describes how to delete them. ({why})"
    )


_PAUSE_SECONDS = 2.0


class RedisCleanUpProvider(Provider):
    """Creates nothing; its deletion waits."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("clean-up", dict(props))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        for line in cleaned_up(_props):
            sys.stderr.write(f"warning: {line}\n")


@dataclass(frozen=True)
class RedisCleanUpArgs:
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
        super().__init__(RedisCleanUpProvider(), name, inputs, opts)


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
