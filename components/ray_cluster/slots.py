"""RayClusters in which Ray cannot start, or on which nothing could ever run. Pure functions on rendered bodies."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from core.problems import Path, Problem
from core.quantities import amount, shown
from kuberay.ray_start import LEAST_MEMORY, LEAST_OBJECT_STORE
from kuberay.rules import problem

Body = Mapping[str, Any]

_STORE = "object-store-memory"

_LEAST = shown("memory", Decimal(LEAST_MEMORY))


def without_slots(body: Body) -> Iterator[Problem]:
    """The problem of a cluster that scales and may never have a worker, with a head that runs no task.

    One that does not scale may have no workers for a while.
    """
    spec = body["spec"]
    groups, offered = spec.get("workerGroupSpecs") or (), spec["headGroupSpec"].get("rayStartParams") or {}
    idle = offered.get("num-cpus") == offered.get("num-gpus") == "0" and "resources" not in offered
    never = groups and not any(group.get("maxReplicas", 1) for group in groups)
    if not (idle and never and spec.get("enableInTreeAutoscaling")):
        return
    message = (
        "no worker may ever run (maxReplicas of each group is 0), and the head offers no CPU, so that nothing runs: "
        "raise one, or the budget or quota that bounds it"
    )
    yield Problem(("spec", "workerGroupSpecs", 0, "maxReplicas"), 0, message, "no-worker-ever")


def without_memory(group: Body, path: Path) -> Iterator[Problem]:
    """Too little memory for Ray to start in a pod of a group; `path`: of the group."""
    ray = group["template"]["spec"]["containers"][0]
    limit = ((ray.get("resources") or {}).get("limits") or {}).get("memory")
    at = (*path, "template", "spec", "containers", 0, "resources", "limits", "memory")
    if limit is not None and amount(str(limit)) < LEAST_MEMORY:
        message = f"Ray does not start with {limit} of memory, and needs at least {_LEAST}: raise it"
        yield problem("ray-start-memory", at, limit, message)
    store = (group.get("rayStartParams") or {}).get(_STORE, "")
    if store.isdecimal() and int(store) < LEAST_OBJECT_STORE:
        message = f"`ray start` takes at least {LEAST_OBJECT_STORE} bytes: raise it, or remove it"
        yield problem("ray-start-memory", (*path, "rayStartParams", _STORE), store, message)
