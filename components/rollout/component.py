"""Brings an edit of a RayCluster to its pods that run already."""

import sys
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from ..cluster import ClusterUnreachableError
from ..dynamic import Resource
from .pods import Pods
from .replacing import Wanted, anything_to_do, replace_old

_SAID = ("strategy", "limit", "parts", "rayVersion", "headMayGo", "context")


class RolloutError(Exception):
    """The pods cannot be looked at; the text says why."""


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(props["cluster"], roll_out(props))

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        moved = [key for key in ("namespace", "cluster") if _olds.get(key) != _news.get(key)]
        changed = any(_olds.get(key) != _news.get(key) for key in _SAID)
        return DiffResult(changes=bool(moved) or changed or _unfinished(_news), replaces=moved)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(roll_out(_news))


def roll_out(props: dict[str, Any]) -> dict[str, Any]:
    """Replaces old pods, and says on the way and at the end who is waited for and who stays.

    Raises RolloutError where the API server does not answer or refuses.
    """
    name = f"RayCluster {props['namespace']}/{props['cluster']}"
    try:
        left = replace_old(_pods(props), _wanted(props), lambda line: _say(f"{name}: {line}"))
    except ClusterUnreachableError as error:
        raise RolloutError(f"{name}: old pods were not all replaced: {error}. Run `pulumi up` again") from None
    for line in left:
        _say(f"warning: {name}: {line}")
    return {**props, "left": left}


def _unfinished(props: dict[str, Any]) -> bool:
    try:
        return anything_to_do(_pods(props), _wanted(props))
    except ClusterUnreachableError:
        return False


def _pods(props: dict[str, Any]) -> Pods:
    return Pods(props.get("context"), props["namespace"], props["cluster"])


def _wanted(props: dict[str, Any]) -> Wanted:
    return Wanted(props["strategy"], props["limit"], props["parts"], props["rayVersion"], props["headMayGo"])


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


@dataclass(frozen=True)
class RolloutArgs:
    """What a Rollout is made from."""

    namespace: pulumi.Input[str]

    cluster: str
    """Name of the RayCluster."""

    wanted: Wanted

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""


class Rollout(Resource, module="ray-platform", name="Rollout"):
    """The pods of a RayCluster have its present settings, as far as its strategy allows.

    It depends on the RayCluster. It has a difference where the settings of pods have changed, and where there are old
    pods that its strategy would replace now. A pod that stays is warned of; it fails no update.

    Outputs:
        left: what was left to say, a line each.
    """

    left: pulumi.Output[list[str]]

    def __init__(self, name: str, args: RolloutArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        wanted = args.wanted
        inputs = {
            "namespace": args.namespace,
            "cluster": args.cluster,
            "context": args.context,
            "strategy": wanted.strategy,
            "limit": wanted.limit,
            "parts": wanted.parts,
            "rayVersion": wanted.ray_version,
            "headMayGo": wanted.head_may_go,
        }
        super().__init__(_Provider(), name, {**inputs, "left": None}, opts)
