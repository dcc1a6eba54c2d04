"""The part of Redis that is one RayCluster's: named when the cluster is made, and never again."""

import datetime
import secrets
import sys
from dataclasses import dataclass
from typing import Any

import kubernetes
import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from ..cluster import ClusterUnreachableError, connect, read
from ..dynamic import Resource
from .fault_tolerance import storage_namespace
from .leftover import what_was_left

_RANDOM_BYTES = 5
"""Enough that no cluster of a name ever meets the keys of an earlier one: one in 10^12."""


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        there = _live(props)
        name, made = _kept(there) if there else (None, None)
        if name is None or not name.startswith(storage_namespace(props["namespace"], props["cluster"], "")):
            name = storage_namespace(props["namespace"], props["cluster"], secrets.token_hex(_RANDOM_BYTES))
            made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return CreateResult(name, {**props, "name": name, "made": made})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        moved = [key for key in ("namespace", "cluster") if _olds.get(key) != _news.get(key)]
        gone = not moved and _gone(_olds)
        elsewhere = _olds.get("context") != _news.get("context")
        return DiffResult(changes=bool(moved or gone or elsewhere), replaces=moved or (["cluster"] if gone else []))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({**_news, "name": _olds["name"], "made": _olds["made"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        if left := what_was_left(_props.get("context"), _props["namespace"], _props["cluster"], _id, _props["made"]):
            sys.stderr.write(f"warning: {left}\n")


def _gone(props: dict[str, Any]) -> bool:
    """Whether the RayCluster that had the keys was deleted behind Pulumi's back; False where that cannot be told."""
    try:
        return _live(props) is None
    except ClusterUnreachableError:
        return False


def _live(props: dict[str, Any]) -> dict[str, Any] | None:
    """The RayCluster, None where there is none or it is being deleted. Raises ClusterUnreachableError."""
    api = kubernetes.client.CustomObjectsApi(connect(props.get("context")))
    there = read(api.get_namespaced_custom_object, "ray.io", "v1", props["namespace"], "rayclusters", props["cluster"])
    return None if there is None or there["metadata"].get("deletionTimestamp") else there


def _kept(there: dict[str, Any]) -> tuple[str | None, str | None]:
    """What a RayCluster's keys begin with, and when it was made. A state that was lost has to find them again."""
    options = there["spec"].get("gcsFaultToleranceOptions") or {}
    return options.get("externalStorageNamespace"), there["metadata"]["creationTimestamp"]


@dataclass(frozen=True)
class StorageNamespaceArgs:
    """What a StorageNamespace is made from."""

    namespace: pulumi.Input[str]

    cluster: str
    """Name of the RayCluster."""

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""


class StorageNamespace(Resource, module="ray-platform", name="StorageNamespace"):
    """Names what a RayCluster's keys in Redis begin with, another for each RayCluster that is made.

    The RayCluster depends on it, so it is deleted afterwards, and then warns of what was left in Redis. Where the
    RayCluster was deleted by somebody else it is made anew: what that one left must not become the next one's past.

    Outputs:
        name: the storage namespace.
    """

    name: pulumi.Output[str]

    def __init__(self, name: str, args: StorageNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {"namespace": args.namespace, "cluster": args.cluster, "context": args.context}
        super().__init__(_Provider(), name, {**inputs, "name": None, "made": None}, opts)
