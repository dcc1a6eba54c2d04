"""Runs in the head of a RayCluster with Ray's own Python: reports the requests for GPUs, and how long they held them.

Never imported by the stack. It only reads the GCS's data of tasks, actors and placement groups.

Prints JSON: {"cluster": id of the GCS's data, "now": time, "demands": [{"id", "gpus", "asked", "started", "ended"}]}.
Times are in seconds since 1970; null: not yet, or unknown. Tasks and actors in a placement group are not listed: its
bundles are, each as a demand of its own; with STRICT_PACK, which puts them on one node, all as one demand.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ray
from ray._raylet import GcsClient, GcsClientOptions, GlobalStateAccessor  # type: ignore[attr-defined] # Ray's stub leaves them out
from ray.core.generated.common_pb2 import (  # type: ignore[attr-defined] # made by protoc
    PlacementStrategy,
    TaskStatus,
    TaskType,
)
from ray.core.generated.gcs_pb2 import (  # type: ignore[attr-defined] # made by protoc
    ActorTableData,
    PlacementGroupTableData,
    TaskEvents,
)

GPU = "GPU"

ENDED = (TaskStatus.FINISHED, TaskStatus.FAILED)

Demand = dict[str, Any]

Ends = dict[bytes, list[float]]
"""By placement group, when its last task or actor ended."""


def demands(address: str) -> dict[str, Any]:
    """All demands that the GCS knows."""
    options = GcsClientOptions.create(address, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=False)
    gcs = GlobalStateAccessor(options)
    gcs.connect()
    within: Ends = {}
    tasks = _task_events(gcs)
    actors = [ActorTableData.FromString(each) for each in gcs.get_actor_table(None, None)]
    groups = [PlacementGroupTableData.FromString(each) for each in gcs.get_placement_group_table()]
    found = [*_of_tasks(tasks, within), *_of_actors(actors, tasks, within)]
    cluster = GcsClient(address=address).cluster_id.hex()
    return {"cluster": cluster, "now": time.time(), "demands": [*found, *_of_groups(groups, within)]}


def _task_events(gcs: Any) -> list[Any]:
    """Where Ray keeps them, which since 2.5x may be the dashboard (ray/_private/state.py: _get_all_task_events)."""
    if getattr(ray._config, "enable_task_events_to_dashboard_head", bool)():
        from ray._private.state import TaskEventsHeadClient

        return list(TaskEventsHeadClient(gcs).get_task_events(timeout=30))
    return [TaskEvents.FromString(each) for each in gcs.get_task_events()]


def _of_tasks(tasks: Iterable[Any], within: Ends) -> Iterator[Demand]:
    for task in tasks:
        info = task.task_info
        if info.type != TaskType.NORMAL_TASK:
            continue
        asked, started, ended = _times(task)
        if group := info.placement_group_id:
            within.setdefault(group, []).extend([ended] if ended else [])
        elif gpus := info.required_resources.get(GPU, 0.0):
            yield _demand(f"{task.task_id.hex()}.{task.attempt_number}", gpus, asked, started, ended)


def _of_actors(actors: Iterable[Any], tasks: Iterable[Any], within: Ends) -> Iterator[Demand]:
    """An actor holds its GPUs until it ends, even if nothing calls it."""
    creations = {task.task_info.actor_id: task for task in tasks if task.task_info.type == TaskType.ACTOR_CREATION_TASK}
    for actor in actors:
        started, ended = (each / 1e3 or None for each in (actor.start_time, actor.end_time))
        if group := actor.placement_group_id:
            within.setdefault(group, []).extend([ended] if ended else [])
        elif gpus := actor.required_resources.get(GPU, 0.0):
            creation = creations.get(actor.actor_id)
            asked = _times(creation)[0] if creation else None
            dead = actor.state == ActorTableData.DEAD
            if started or not dead:
                yield _demand(actor.actor_id.hex(), gpus, asked or started, started, ended if dead else None)


def _of_groups(groups: Iterable[Any], within: Ends) -> Iterator[Demand]:
    """The GCS does not report when a group was removed: it counts until its last task or actor has ended."""
    for group in groups:
        gpus = [bundle.unit_resources.get(GPU, 0.0) for bundle in group.bundles]
        if group.strategy == PlacementStrategy.STRICT_PACK:
            gpus = [sum(gpus)]
        asked = group.placement_group_creation_timestamp_ms / 1e3 or None
        started = group.placement_group_final_bundle_placement_timestamp_ms / 1e3 or None
        ended = None
        if group.state == PlacementGroupTableData.REMOVED:
            ended = max(within.get(group.placement_group_id, ()), default=None)
            if not (started and ended):
                continue
        for number, each in enumerate(gpus):
            if each:
                yield _demand(f"{group.placement_group_id.hex()}.{number}", each, asked, started, ended)


def _times(task: Any) -> tuple[float | None, float | None, float | None]:
    """When it requested its resources, when it started, and when it ended."""
    at: Mapping[int, int] = task.state_updates.state_ts_ns
    asked = at.get(TaskStatus.PENDING_NODE_ASSIGNMENT) or at.get(TaskStatus.PENDING_ARGS_AVAIL)
    ended = next((at[state] for state in ENDED if state in at), None)
    return _seconds(asked), _seconds(at.get(TaskStatus.RUNNING)), _seconds(ended)


def _seconds(nanoseconds: int | None) -> float | None:
    return nanoseconds / 1e9 if nanoseconds else None


def _demand(name: str, gpus: float, asked: float | None, started: float | None, ended: float | None) -> Demand:
    return {"id": name, "gpus": gpus, "asked": asked or started, "started": started, "ended": ended}


if __name__ == "__main__":
    print(json.dumps(demands(os.environ.get("RAY_ADDRESS", "127.0.0.1:6379"))))
