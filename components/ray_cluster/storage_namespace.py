"""The prefix of one RayCluster's keys in Redis: created with the RayCluster and never reused."""

import datetime
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection
from components.dynamic import Resource
from components.kubernetes_cluster import cluster_of
from components.ray_cluster.pods import storage_namespace
from components.ray_cluster.readiness import when

_RANDOM_BYTES = 5
"""Enough that a cluster does not reuse the keys of an earlier one of its name: the chance is one in 10^12."""


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        live = _live(props)
        name, made = _kept(live) if live else (None, None)
        if name is None or not name.startswith(storage_namespace(props["namespace"], props["cluster"], "")):
            name = storage_namespace(props["namespace"], props["cluster"], secrets.token_hex(_RANDOM_BYTES))
            made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return CreateResult(name, {**props, "name": name, "made": made})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        moved = [key for key in ("namespace", "cluster") if _olds.get(key) != _news.get(key)]
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
    """Arguments of StorageNamespace."""

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
        super().__init__(_Provider(), name, {**inputs, "name": None, "made": None}, opts)


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
