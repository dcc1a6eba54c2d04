"""Applies an edit of a RayCluster to its running pods."""

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from components.cluster import AMBIENT, ClusterUnreachableError, Connection
from components.dynamic import Provider, Resource
from components.kubernetes_cluster import cluster_of
from components.rollout.pods import Pods
from components.rollout.replacing import Desired, has_pods_to_replace, replace_old
from components.waiting import report


class RolloutError(Exception):
    """The pods cannot be read; the message has the reason."""


class RolloutProvider(Provider):
    """Old pods that can be replaced now are a change, too."""

    replacing = ("namespace", "cluster")
    compared = ("strategy", "limit", "parts", "rayVersion", "workersOutliveHead")

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(props["cluster"], roll_out(props))

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        diff = super().diff(_id, _olds, _news)
        return diff if diff.changes else DiffResult(changes=_unfinished(_news))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(roll_out(_news))


def roll_out(props: dict[str, Any]) -> dict[str, Any]:
    """Replaces old pods. Reports the pods that it waits for, and at the end those that stay.

    Raises RolloutError if the API server does not answer or refuses.
    """
    name = f"RayCluster {props['namespace']}/{props['cluster']}"
    try:
        left = replace_old(_pods(props), _desired(props), lambda line: report(f"{name}: {line}"))
    except ClusterUnreachableError as error:
        raise RolloutError(f"{name}: old pods were not all replaced: {error}. Run `pulumi up` again") from None
    for line in left:
        report(f"warning: {name}: {line}")
    return {**props, "left": left}


def _unfinished(props: dict[str, Any]) -> bool:
    try:
        return has_pods_to_replace(_pods(props), _desired(props))
    except ClusterUnreachableError:
        return False


def _pods(props: dict[str, Any]) -> Pods:
    return Pods(cluster_of(props), props["namespace"], props["cluster"])


def _desired(props: dict[str, Any]) -> Desired:
    return Desired(props["strategy"], props["limit"], props["parts"], props["rayVersion"], props["workersOutliveHead"])


@dataclass(frozen=True)
class RolloutArgs:
    namespace: pulumi.Input[str]

    cluster: str
    """Name of the RayCluster."""

    desired: Desired

    connection: Connection = AMBIENT


class Rollout(Resource, module="ray-platform", name="Rollout"):
    """Replaces pods of a RayCluster that have old settings, as far as its update strategy allows.

    It depends on the RayCluster. A preview shows a difference if settings of pods have changed, or if there are old
    pods that the strategy would replace now. Old pods that stay cause a warning and do not fail the update.

    Outputs:
        left: the warnings, one per line.
    """

    left: pulumi.Output[list[str]]

    def __init__(self, name: str, args: RolloutArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        desired = args.desired
        inputs = {
            "namespace": args.namespace,
            "cluster": args.cluster,
            **args.connection.inputs(),
            "strategy": desired.strategy,
            "limit": desired.limit,
            "parts": desired.parts,
            "rayVersion": desired.ray_version,
            "workersOutliveHead": desired.workers_outlive_head,
        }
        super().__init__(RolloutProvider(), name, {**inputs, "left": None}, opts)
