"""Replaces the pods of a RayCluster that are older than its settings, by its update strategy.

The state is read again in each round, so the next run continues an interrupted one.

When a drained node is idle, Ray 2.60 ends with exit code 0. `ray start --block` ends only for other codes
(scripts/scripts.py), so the pod keeps running without Ray. Ray also does nothing when the drain deadline is over.
Therefore this module deletes the pods. KubeRay creates new ones up to `replicas`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.rollout.pods import Pod, Pods, UnknownRayError, group, kind, leaves, named, started
from components.rollout.settings import Strategy
from components.rollout.templates import is_old, recreates

PAUSE_SECONDS = 3.0

ENDING_SECONDS = 120.0
"""Seconds to wait for a pod that was deleted or drained to disappear."""


@dataclass(frozen=True)
class Desired:
    strategy: Strategy

    limit: float
    """Seconds, for `drain`."""

    parts: Mapping[str, Any]
    """templates.parts of the RayCluster."""

    ray_version: str

    workers_outlive_head: bool
    """Whether workers outlive the head."""


def cannot_join(strategy: Strategy, live: Mapping[str, Any], desired: Mapping[str, Any]) -> str | None:
    """Why desired workers could not join the running head; None if they can, or if nothing is replaced.

    `live`, `desired`: specs of the RayCluster; `live` is empty if it does not exist. Ray refuses workers of another
    version (scripts/scripts.py, `start`). A head keeps the TLS and authentication settings that it started with.
    """
    if strategy not in ("onIdle", "drain") or recreates(desired) or not live:
        return None
    before, now = live.get("rayVersion"), desired.get("rayVersion")
    if before and before != now:
        why = f"it runs Ray {before}, and workers with Ray {now} could not join its head"
    elif changed := [name for name, value in _join_settings(live).items() if value != _join_settings(desired)[name]]:
        why = f"its head keeps the {' and '.join(changed)} that it has started with, and new workers could not join it"
    else:
        return None
    return (
        f"{why}, which `updates: {{strategy: {strategy}}}` does not replace. Set `updates: {{strategy: immediate}}`, "
        "which ends all that runs on it, or add a cluster with another name and remove this one when its work is done"
    )


def _join_settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, other than the version, that head and workers must share."""
    env = {
        each["name"]: each.get("value")
        for each in spec["headGroupSpec"]["template"]["spec"]["containers"][0].get("env") or ()
    }
    return {
        "authOptions": spec.get("authOptions") or {},
        **{name: env.get(name) for name in ("RAY_USE_TLS", "RAY_AUTH_MODE")},
    }


def old_workers(pods: Sequence[Pod], parts: Mapping[str, Any]) -> list[Pod]:
    """Workers that are older than the settings, including those that are being deleted."""
    return [pod for pod in pods if kind(pod) == "worker" and is_old(pod, parts["groups"].get(group(pod)))]


def old_heads(pods: Sequence[Pod], parts: Mapping[str, Any]) -> list[Pod]:
    """The head, if it is older than the settings."""
    return [pod for pod in pods if kind(pod) == "head" and is_old(pod, parts["head"])]


def has_pods_to_replace(pods: Pods, desired: Desired) -> bool:
    """Whether a run would replace a pod now."""
    current = pods.all()
    old = old_workers(current, desired.parts)
    if desired.strategy == "none":
        return False
    if desired.strategy == "immediate":
        return bool(old or old_heads(current, desired.parts))
    if any(not started(pod) for pod in (*old, *old_heads(current, desired.parts))):
        return True
    try:
        nodes = pods.ask(current, {})["nodes"] if old else {}
    except UnknownRayError:
        return False
    if desired.strategy == "drain":
        return bool(old)
    return any(nodes.get(pod["metadata"]["name"]) in ("IDLE", "DEAD") for pod in _single(old, desired.parts))


def replace_old(pods: Pods, desired: Desired, show: Callable[[str], None] = lambda _line: None) -> list[str]:
    """Replaces old pods. Returns a line for each reason why pods stay.

    `show`: called with the current reason to wait.
    """
    if desired.strategy == "none":
        return []
    if desired.strategy == "immediate":
        return _immediately(pods, desired)
    deadline = time.monotonic() + (desired.limit if desired.strategy == "drain" else 0)
    left = _when_idle(pods, desired, deadline, show)
    heads = old_heads(pods.all(), desired.parts)
    for pod in heads:
        if not started(pod) and not leaves(pod):
            pods.delete(pod, unchanged=True)
    if heads := [pod for pod in heads if started(pod)]:
        left.append(
            f"the head, pod {named(heads)}, keeps its former settings: replacing it would end all work on the "
            "cluster. `updates: {strategy: immediate}` replaces it"
        )
    return left


def _immediately(pods: Pods, desired: Desired) -> list[str]:
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        current = pods.all()
        old = [*old_heads(current, desired.parts), *old_workers(current, desired.parts)]
        if old and kind(old[0]) == "head" and not desired.workers_outlive_head:
            # Workers do not join a new head without fault tolerance.
            old += [pod for pod in current if kind(pod) == "worker" and pod not in old]
        if not old:
            return []
        if time.monotonic() > deadline:
            return [f"{named(old)}: deleted {round(ENDING_SECONDS)} s ago, and still there"]
        # The head last: with a new head the next round would not know that its workers must be replaced, too.
        for pod in reversed(old):
            if not leaves(pod):
                pods.delete(pod)
        time.sleep(PAUSE_SECONDS)


def _when_idle(pods: Pods, desired: Desired, deadline: float, show: Callable[[str], None]) -> list[str]:
    ending = max(deadline, time.monotonic()) + ENDING_SECONDS
    going: set[str] = set()
    """Workers that accepted the drain and take no new work."""
    while True:
        current = pods.all()
        old = old_workers(current, desired.parts)
        running = [pod for pod in old if started(pod) and not leaves(pod)]
        for pod in old:
            if not started(pod) and not leaves(pod):
                # If the pod has started meanwhile, the API server refuses, and the next round drains it.
                pods.delete(pod, unchanged=True)
        if not old:
            return []
        now = time.monotonic()
        if now > ending:
            return [f"{named(old)}: asked to end, and still there"]
        if desired.strategy == "drain" and now > deadline:
            for pod in running:
                pods.delete(pod)
        elif running:
            try:
                busy = _drained(pods, current, running, desired, deadline, going)
            except UnknownRayError as error:
                if desired.strategy == "onIdle" or not going:
                    return [_unknown(running, error)]
                busy = running
            if desired.strategy == "onIdle" and len(busy) == len(old):
                return [
                    f"busy workers keep their former settings: {named(busy)}. Each `up` replaces those that are idle; "
                    "`updates: {strategy: drain}` waits for them"
                ]
            if busy:
                show(f"{len(busy)} old workers are busy: {named(busy)}")
        time.sleep(PAUSE_SECONDS)


def _drained(
    pods: Pods, current: Sequence[Pod], running: Sequence[Pod], desired: Desired, deadline: float, going: set[str]
) -> list[Pod]:
    """Drains old workers and deletes those whose Ray has ended. Returns the busy ones."""
    left = None if desired.strategy == "onIdle" else deadline - time.monotonic()
    asked = _single(running, desired.parts) if left is None else running
    reported = pods.ask(
        current, {pod["metadata"]["name"]: left for pod in asked if pod["metadata"]["name"] not in going}
    )
    if reported["ray"] != desired.ray_version:
        raise UnknownRayError(
            f"its head runs Ray {reported['ray']}, and workers with Ray {desired.ray_version} could not join it. "
            "`updates: {strategy: immediate}` replaces head and workers"
        )
    going.update(reported["accepted"])
    dead = [pod for pod in running if reported["nodes"].get(pod["metadata"]["name"]) == "DEAD"]
    for pod in dead:
        hosts = [each for each in running if group(each) == group(pod)]
        # KubeRay deletes the other hosts of a worker with the first (raycluster_controller.go:
        # reconcileMultiHostWorkerGroup).
        if pod in _single(running, desired.parts) or all(each in dead for each in hosts):
            pods.delete(pod)
    alive = [pod for pod in running if pod not in dead]
    return [pod for pod in alive if left is not None or pod["metadata"]["name"] not in going]


def _single(pods: Sequence[Pod], parts: Mapping[str, Any]) -> list[Pod]:
    """The pods that are a whole worker, not one host of a worker with several hosts."""
    return [pod for pod in pods if parts["groups"].get(group(pod), {}).get("hosts", 1) == 1]


def _unknown(running: Sequence[Pod], error: UnknownRayError) -> str:
    return (
        f"{named(running)} keep their former settings, because it cannot be determined whether they are busy: {error}"
    )
