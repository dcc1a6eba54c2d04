"""Deletes the workers of worker groups that leave the stack file, before the groups are removed.

KubeRay does not delete the pods of a removed group, and Ray's autoscaler fails on pods of an unknown group. So with an
autoscaler the group is closed first (`maxReplicas` becomes the number of its running workers), drained by the update
strategy, and emptied as the autoscaler does it: `replicas` and `workersToDelete` in one patch. KubeRay then deletes
just these pods and creates no new ones (raycluster_controller.go: reconcilePods).
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from components.cluster import Cluster, ConflictError
from components.rollout.pods import Pod, Pods, UnknownRayError, group, kind, leaves, named, started
from components.rollout.replacing import ENDING_SECONDS, PAUSE_SECONDS
from components.rollout.settings import Strategy


class NotRetiredError(Exception):
    """A group to retire still has workers; the message names them and what to do."""


class Groups:
    """The live worker groups of a RayCluster."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        """`name`: of the RayCluster."""
        self._cluster, self._place = cluster, ("ray.io/v1", "rayclusters", namespace, name)

    def all(self) -> list[Mapping[str, Any]]:
        """In their order. Raises ClusterUnreachableError."""
        live = self._cluster.get(*self._place)
        return list(((live or {}).get("spec") or {}).get("workerGroupSpecs") or ())

    def shrink(self, place: int, group: Mapping[str, Any], staying: int, going: Sequence[str]) -> None:
        """Reduces a group to `staying` replicas, deletes its pods `going`, and prevents new ones.

        Does nothing if the list has changed meanwhile. Raises ClusterUnreachableError.
        """
        at = f"/spec/workerGroupSpecs/{place}"
        numbers = {"minReplicas": 0, "maxReplicas": staying, "replicas": staying}
        patch = [
            {"op": "test", "path": f"{at}/groupName", "value": group["groupName"]},
            *({"op": "add", "path": f"{at}/{key}", "value": number} for key, number in numbers.items()),
            {"op": "add", "path": f"{at}/scaleStrategy", "value": {"workersToDelete": list(going)}},
        ]
        with suppress(ConflictError):
            self._cluster.patch(*self._place, patch)


def retire(
    groups: Groups,
    pods: Pods,
    staying: Iterable[str],
    strategy: Strategy,
    limit: float,
    show: Callable[[str], None] = lambda _line: None,
) -> None:
    """Empties the live groups that are not in `staying`. `limit`: seconds, for `drain`.

    Raises NotRetiredError if busy workers stay or their state is not known; ClusterUnreachableError.
    """
    staying = set(staying)
    deadline = time.monotonic() + (limit if strategy == "drain" else 0)
    ending = deadline + ENDING_SECONDS
    while True:
        alive = groups.all()
        leaving = {each["groupName"]: place for place, each in enumerate(alive) if each["groupName"] not in staying}
        current = pods.all()
        workers = [pod for pod in current if kind(pod) == "worker" and group(pod) in leaving]
        if not workers and not any(alive[place].get("replicas") for place in leaving.values()):
            return
        now = time.monotonic()
        if now > ending:
            raise NotRetiredError(
                _refusal(workers, "they were asked to end, and are still there. Run `pulumi up` again")
            )
        if strategy == "immediate" or (strategy == "drain" and now > deadline):
            ended = workers
        else:
            ended = _ended(pods, current, workers, strategy, deadline)
        if busy := [pod for pod in workers if pod not in ended and not leaves(pod)]:
            show(f"{len(busy)} workers of groups to remove are still busy: {named(busy)}")
        for name, place in leaving.items():
            own = [pod for pod in workers if group(pod) == name]
            going = [pod["metadata"]["name"] for pod in own if pod in ended or leaves(pod)]
            hosts = alive[place].get("numOfHosts") or 1
            groups.shrink(place, alive[place], math.ceil((len(own) - len(going)) / hosts), going)
        time.sleep(PAUSE_SECONDS)


def _ended(
    pods: Pods, current: Sequence[Pod], workers: Sequence[Pod], strategy: Strategy, deadline: float
) -> list[Pod]:
    """Workers that can be deleted: Ray has ended on them or was never started."""
    if not workers:
        return []
    if strategy == "none":
        raise NotRetiredError(_refusal(workers, "`updates: {strategy: none}` keeps them. Set another strategy"))
    running = {pod["metadata"]["name"]: pod for pod in workers if started(pod) and not leaves(pod)}
    try:
        nodes = pods.ask(current, {})["nodes"] if running else {}
        alive = {name: pod for name, pod in running.items() if nodes.get(name) != "DEAD"}
        busy = [pod for name, pod in alive.items() if nodes.get(name) not in ("IDLE", "DRAINING")]
        if strategy == "onIdle" and busy:
            raise NotRetiredError(_refusal(busy, _CHOICE))
        left = None if strategy == "onIdle" else deadline - time.monotonic()
        if drain := {name: left for name in alive if nodes.get(name) in ("IDLE", "RUNNING")}:
            accepted = pods.ask(current, drain)["accepted"]
            if refused := [alive[name] for name in drain if name not in accepted]:
                raise NotRetiredError(_refusal(refused, _CHOICE))
    except UnknownRayError as error:
        raise NotRetiredError(
            _refusal(workers, f"it cannot be determined whether they are busy: {error}. {_CHOICE}")
        ) from None
    return [pod for pod in workers if pod["metadata"]["name"] not in alive]


_CHOICE = (
    "Nothing of the RayCluster was changed. Run `pulumi up` again when they are idle, or let them end with `updates: "
    "{strategy: drain, limit: 30m}` or, at once, `{strategy: immediate}`"
)


def _refusal(pods: Sequence[Pod], why: str) -> str:
    names = ", ".join(sorted({str(group(pod)) for pod in pods}))
    return f"worker group {names} is removed from the stack file, and has workers ({named(pods)}): {why}"
