"""Replaces the pods of a RayCluster that are older than its settings, as its strategy says.

All that is needed to go on is read anew each time, so what was interrupted is continued by the next run.

Ray 2.60 on a node that is drained ends with exit code 0 once the node is idle, and `ray start --block` heeds only other
codes (scripts/scripts.py), so that the pod runs on without Ray; nor does Ray do anything at the end of the time that it
was given to drain. Both are why pods are deleted here. KubeRay makes as many anew as `replicas` says.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .pods import Pod, Pods, UnknownRayError, group, kind, leaves, named, started
from .settings import Strategy
from .templates import is_old, recreates

PAUSE_SECONDS = 3.0

ENDING_SECONDS = 120.0
"""So long a pod that was deleted, or whose Ray was told to end, is waited for."""


@dataclass(frozen=True)
class Wanted:
    """What the stack says."""

    strategy: Strategy

    limit: float
    """Seconds, for `drain`."""

    parts: Mapping[str, Any]
    """templates.parts of the RayCluster."""

    ray_version: str

    head_may_go: bool
    """Whether workers outlive the head."""


def cannot_join(strategy: Strategy, live: Mapping[str, Any], said: Mapping[str, Any]) -> str | None:
    """Why workers of what is said could not join the head that runs; None where they can, or nothing is replaced.

    `live`, `said`: specs of the RayCluster; `live` is empty where there is none. Ray refuses workers of another version
    (scripts/scripts.py, `start`), and a head speaks and lets in as it was told when it started.
    """
    if strategy not in ("onIdle", "drain") or recreates(said) or not live:
        return None
    before, now = live.get("rayVersion"), said.get("rayVersion")
    if before and before != now:
        why = f"it runs Ray {before}, and workers with Ray {now} could not join its head"
    elif changed := [name for name, told in _way_in(live).items() if told != _way_in(said)[name]]:
        why = f"its head keeps the {' and '.join(changed)} that it has started with, and new workers could not join it"
    else:
        return None
    return (
        f"{why}, which `updates: {{strategy: {strategy}}}` does not replace. Set `updates: {{strategy: immediate}}`, "
        "which ends all that runs on it, or add a cluster with another name and remove this one when its work is done"
    )


def _way_in(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What head and workers have to agree on beside the version."""
    env = {
        each["name"]: each.get("value")
        for each in spec["headGroupSpec"]["template"]["spec"]["containers"][0].get("env") or ()
    }
    return {
        "authOptions": spec.get("authOptions") or {},
        **{name: env.get(name) for name in ("RAY_USE_TLS", "RAY_AUTH_MODE")},
    }


def old_workers(pods: Sequence[Pod], parts: Mapping[str, Any]) -> list[Pod]:
    """Workers that are older than the settings, those that are being deleted too."""
    return [pod for pod in pods if kind(pod) == "worker" and is_old(pod, parts["groups"].get(group(pod)))]


def old_heads(pods: Sequence[Pod], parts: Mapping[str, Any]) -> list[Pod]:
    """The head, where it is older than the settings."""
    return [pod for pod in pods if kind(pod) == "head" and is_old(pod, parts["head"])]


def anything_to_do(pods: Pods, wanted: Wanted) -> bool:
    """Whether a run would replace a pod now."""
    there = pods.all()
    old = old_workers(there, wanted.parts)
    if wanted.strategy == "none":
        return False
    if wanted.strategy == "immediate":
        return bool(old or old_heads(there, wanted.parts))
    if any(not started(pod) for pod in old):
        return True
    try:
        nodes = pods.ask(there, {})["nodes"] if old else {}
    except UnknownRayError:
        return False
    if wanted.strategy == "drain":
        return bool(old)
    return any(nodes.get(pod["metadata"]["name"]) in ("IDLE", "DEAD") for pod in _single(old, wanted.parts))


def replace_old(pods: Pods, wanted: Wanted, show: Callable[[str], None] = lambda _line: None) -> list[str]:
    """Replaces what is old. Returns what is left to say, a line each: who stays, and why.

    `show`: called with what is waited for.
    """
    if wanted.strategy == "none":
        return []
    if wanted.strategy == "immediate":
        return _at_once(pods, wanted)
    deadline = time.monotonic() + (wanted.limit if wanted.strategy == "drain" else 0)
    left = _in_turn(pods, wanted, deadline, show)
    if heads := old_heads(pods.all(), wanted.parts):
        left.append(
            f"the head, pod {named(heads)}, keeps its former settings: to replace it ends what runs on the cluster. "
            "`updates: {strategy: immediate}` does"
        )
    return left


def _at_once(pods: Pods, wanted: Wanted) -> list[str]:
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        there = pods.all()
        old = [*old_heads(there, wanted.parts), *old_workers(there, wanted.parts)]
        if old and kind(old[0]) == "head" and not wanted.head_may_go:
            # Workers do not join a head that knows nothing of them.
            old += [pod for pod in there if kind(pod) == "worker" and pod not in old]
        if not old:
            return []
        if time.monotonic() > deadline:
            return [f"{named(old)}: deleted {round(ENDING_SECONDS)} s ago, and not gone yet"]
        # The head last: one that is new already would hide that its workers have to go.
        for pod in reversed(old):
            if not leaves(pod):
                pods.delete(pod)
        time.sleep(PAUSE_SECONDS)


def _in_turn(pods: Pods, wanted: Wanted, deadline: float, show: Callable[[str], None]) -> list[str]:
    ending = max(deadline, time.monotonic()) + ENDING_SECONDS
    going: set[str] = set()
    """Workers that take no new work any more."""
    while True:
        there = pods.all()
        old = old_workers(there, wanted.parts)
        running = [pod for pod in old if started(pod) and not leaves(pod)]
        for pod in old:
            if not started(pod) and not leaves(pod):
                # In the moment in which it starts the API server refuses, and it is asked with the others.
                pods.delete(pod, unchanged=True)
        if not old:
            return []
        now = time.monotonic()
        if now > ending:
            return [f"{named(old)}: told to end, and not gone yet"]
        if wanted.strategy == "drain" and now > deadline:
            for pod in running:
                pods.delete(pod)
        elif running:
            try:
                busy = _asked(pods, there, running, wanted, deadline, going)
            except UnknownRayError as error:
                if wanted.strategy == "onIdle" or not going:
                    return [_unknown(running, error)]
                busy = running
            if wanted.strategy == "onIdle" and len(busy) == len(old):
                return [
                    f"busy workers keep their former settings: {named(busy)}. Each `up` replaces those that are idle; "
                    "`updates: {strategy: drain}` waits for them"
                ]
            if busy:
                show(f"{len(busy)} old workers are busy: {named(busy)}")
        time.sleep(PAUSE_SECONDS)


def _asked(
    pods: Pods, there: Sequence[Pod], running: Sequence[Pod], wanted: Wanted, deadline: float, going: set[str]
) -> list[Pod]:
    """Drains the old workers, and deletes those on which Ray has ended. Returns those that go on."""
    until = None if wanted.strategy == "onIdle" else round((time.time() + deadline - time.monotonic()) * 1000)
    asked = _single(running, wanted.parts) if until is None else running
    told = pods.ask(there, {pod["metadata"]["name"]: until for pod in asked if pod["metadata"]["name"] not in going})
    if told["ray"] != wanted.ray_version:
        raise UnknownRayError(
            f"its head runs Ray {told['ray']}, and workers with Ray {wanted.ray_version} could not join it. "
            "`updates: {strategy: immediate}` replaces head and workers"
        )
    going.update(told["accepted"])
    dead = [pod for pod in running if told["nodes"].get(pod["metadata"]["name"]) == "DEAD"]
    for pod in dead:
        hosts = [each for each in running if group(each) == group(pod)]
        # KubeRay deletes the other hosts of a worker with the first (raycluster_controller.go:
        # reconcileMultiHostWorkerGroup).
        if pod in _single(running, wanted.parts) or all(each in dead for each in hosts):
            pods.delete(pod)
    alive = [pod for pod in running if pod not in dead]
    return [pod for pod in alive if until is not None or pod["metadata"]["name"] not in going]


def _single(pods: Sequence[Pod], parts: Mapping[str, Any]) -> list[Pod]:
    """Those that are a worker each, and not one of several hosts of it."""
    return [pod for pod in pods if parts["groups"].get(group(pod), {}).get("hosts", 1) == 1]


def _unknown(running: Sequence[Pod], error: UnknownRayError) -> str:
    return f"{named(running)} keep their former settings, because it cannot be told whether they are busy: {error}"
