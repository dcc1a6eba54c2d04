"""Typical edits of a RayCluster in a stack file, drawn at random. Pure functions.

A RayCluster here is its entry of the stack file. It has worker groups without GPUs, so that many fit on a few nodes.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Cluster = dict[str, Any]

Change = Callable[[Random, Cluster], None]
"""Changes a RayCluster's settings; sometimes to their present values."""

RAY = "2.60.0"
TAGS = (RAY, f"{RAY}-py312", f"{RAY}-cpu")
GROUPS = ("one", "two", "three", "four", "five", "six")
STRATEGIES: tuple[dict[str, str], ...] = (
    {"strategy": "onIdle"},
    {"strategy": "drain", "limit": "1m"},
    {"strategy": "immediate"},
    {"strategy": "none"},
)
PRIORITIES = ("ray-head", "ray-worker")
"""PriorityClasses that every stack has."""


@dataclass(frozen=True)
class Edit:
    """A RayCluster after an edit, and a description of the edit."""

    what: str
    cluster: Cluster


def seeded(*of: object) -> Random:
    """A random generator that gives the same results for the same arguments."""
    return Random("/".join(map(str, of)))  # noqa: S311 -- it makes the same numbers each time


def strategy(cluster: Cluster) -> str:
    """The strategy of its `updates`."""
    return str((cluster.get("updates") or STRATEGIES[0])["strategy"])


def groups(cluster: Cluster) -> list[Cluster]:
    """Its worker groups in the file."""
    found: list[Cluster] = cluster["workers"]["variants"]
    return found


def scales(cluster: Cluster) -> bool:
    """Whether it has an autoscaler."""
    return bool(cluster.get("autoscaling", True))


def first(draw: Random, name: str) -> Cluster:
    """A random first RayCluster."""
    made: Cluster = {
        "name": name,
        "rayVersion": RAY,
        "image": f"rayproject/ray:{RAY}",
        "head": {"cpu": "1", "memory": "2Gi"},
        "workers": {"pool": "a100", "variants": []},
    }
    for _ in range(draw.randint(1, 3)):
        _group_added(draw, made)
    if draw.random() < 0.5:
        _updates(draw, made)
    return made


def edited(draw: Random, cluster: Cluster) -> Edit:
    """The RayCluster with one to three changes, at least one of which has an effect."""
    while True:
        after, names = copy.deepcopy(cluster), []
        for change in draw.choices(list(CHANGES), [CHANGES[each] for each in CHANGES], k=draw.choice((1, 1, 2, 3))):
            before = copy.deepcopy(after)
            change(draw, after)
            if after != before:
                names.append(_called(change))
        if after != cluster:
            return Edit(" and ".join(dict.fromkeys(names)), after)


def wrong(draw: Random, cluster: Cluster) -> Edit:
    """The RayCluster with an invalid setting."""
    possible = [*WRONG, *([_another_ray] if strategy(cluster) in ("onIdle", "drain") else [])]
    change, after = draw.choice(possible), copy.deepcopy(cluster)
    change(draw, after)
    return Edit(_called(change), after)


def _called(change: Change) -> str:
    return change.__name__.strip("_").replace("_", " ")


def _one(draw: Random, cluster: Cluster) -> Cluster:
    return draw.choice(groups(cluster))


def _number(draw: Random) -> str:
    return str(draw.randint(1, 99))


def _group(draw: Random, name: str) -> Cluster:
    numbers = {"minReplicas": draw.randint(0, 1), "maxReplicas": draw.randint(2, 4)}
    return {"gpus": 0, "name": name, "cpu": draw.choice(("1", "2")), "memory": "1Gi", **numbers}


def _image(draw: Random, cluster: Cluster) -> None:
    cluster["image"] = f"rayproject/ray:{draw.choice(TAGS)}"


def _env(draw: Random, cluster: Cluster) -> None:
    cluster["env"] = {**cluster.get("env", {}), "LEVEL": _number(draw)}


def _env_of_the_head(draw: Random, cluster: Cluster) -> None:
    cluster["head"]["env"] = {"HEAD_LEVEL": _number(draw)}


def _env_of_workers(draw: Random, cluster: Cluster) -> None:
    cluster["workers"]["env"] = {"WORKER_LEVEL": _number(draw)}


def _resources_of_the_head(draw: Random, cluster: Cluster) -> None:
    cluster["head"]["memory"] = draw.choice(("2Gi", "3Gi", "4Gi"))


def _resources_of_a_group(draw: Random, cluster: Cluster) -> None:
    _one(draw, cluster).update(cpu=draw.choice(("1", "2")), memory=draw.choice(("1Gi", "2Gi")))


def _numbers_of_a_group(draw: Random, cluster: Cluster) -> None:
    least = draw.randint(0, 2)
    _one(draw, cluster).update(minReplicas=least, maxReplicas=draw.randint(max(least, 1), 4))


def _priority_of_a_group(draw: Random, cluster: Cluster) -> None:
    _one(draw, cluster)["podTemplate"] = {"spec": {"priorityClassName": draw.choice(PRIORITIES)}}


def _group_added(draw: Random, cluster: Cluster) -> None:
    if names := _free_names(cluster):
        groups(cluster).insert(draw.randint(0, len(groups(cluster))), _group(draw, draw.choice(names)))


def _group_removed(draw: Random, cluster: Cluster) -> None:
    if len(groups(cluster)) > 1:
        groups(cluster).remove(_one(draw, cluster))


def _group_renamed(draw: Random, cluster: Cluster) -> None:
    if names := _free_names(cluster):
        _one(draw, cluster)["name"] = draw.choice(names)


def _free_names(cluster: Cluster) -> list[str]:
    return [name for name in GROUPS if name not in {group["name"] for group in groups(cluster)}]


def _groups_reordered(draw: Random, cluster: Cluster) -> None:
    draw.shuffle(groups(cluster))


def _idle_timeout(draw: Random, cluster: Cluster) -> None:
    if scales(cluster):
        cluster["idleTimeout"] = draw.choice(("2m", "5m", "10m"))


def _idle_timeout_of_a_group(draw: Random, cluster: Cluster) -> None:
    if scales(cluster):
        _one(draw, cluster)["idleTimeout"] = draw.choice(("2m", "5m", "10m"))


def _labels(draw: Random, cluster: Cluster) -> None:
    cluster["labels"] = {"cost-center": _number(draw)}


def _annotations(draw: Random, cluster: Cluster) -> None:
    cluster["annotations"] = {"example.com/ticket": _number(draw)}


def _updates(draw: Random, cluster: Cluster) -> None:
    cluster["updates"] = dict(draw.choice(STRATEGIES))


def _autoscaling(_draw: Random, cluster: Cluster) -> None:
    if scales(cluster):
        cluster["autoscaling"] = False
        for each in (cluster, *groups(cluster)):
            each.pop("idleTimeout", None)
    else:
        del cluster["autoscaling"]


CHANGES: Mapping[Change, int] = {
    _image: 3,
    _env: 3,
    _env_of_the_head: 2,
    _env_of_workers: 3,
    _resources_of_the_head: 2,
    _resources_of_a_group: 3,
    _numbers_of_a_group: 4,
    _priority_of_a_group: 2,
    _group_added: 3,
    _group_removed: 3,
    _group_renamed: 2,
    _groups_reordered: 3,
    _idle_timeout: 2,
    _idle_timeout_of_a_group: 2,
    _labels: 2,
    _annotations: 2,
    _updates: 4,
    _autoscaling: 1,
}
"""The relative weight of each change."""


def _more_at_least_than_at_most(draw: Random, cluster: Cluster) -> None:
    _one(draw, cluster).update(minReplicas=5, maxReplicas=2)


def _unknown_key(_draw: Random, cluster: Cluster) -> None:
    cluster["idelTimeout"] = "5m"


def _two_groups_of_one_name(_draw: Random, cluster: Cluster) -> None:
    groups(cluster).append(dict(groups(cluster)[0]))


def _image_of_another_ray(_draw: Random, cluster: Cluster) -> None:
    cluster["image"] = "rayproject/ray:2.59.0"


def _memory_without_a_unit(_draw: Random, cluster: Cluster) -> None:
    cluster["head"]["memory"] = "16"


def _limit_of_another_strategy(_draw: Random, cluster: Cluster) -> None:
    cluster["updates"] = {"strategy": "immediate", "limit": "1m"}


def _another_ray(_draw: Random, cluster: Cluster) -> None:
    cluster.update(rayVersion="2.59.0", image="rayproject/ray:2.59.0")


WRONG: Sequence[Change] = (
    _more_at_least_than_at_most,
    _unknown_key,
    _two_groups_of_one_name,
    _image_of_another_ray,
    _memory_without_a_unit,
    _limit_of_another_strategy,
)
"""All of these are refused before anything is sent. So is `_another_ray`, unless the head is replaced."""
