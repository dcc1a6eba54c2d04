"""Small valid manifests, and a short notation for edits of them."""

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from core.body import Body

GONE: Any = object()
"""Value of an edit that removes the field."""


def pod(name: str) -> Body:
    return {"spec": {"containers": [{"name": name, "image": "rayproject/ray:2.60.0"}]}}


def cluster_spec() -> Body:
    worker = {"groupName": "workers", "minReplicas": 0, "maxReplicas": 4, "template": pod("ray-worker")}
    return {"rayVersion": "2.60.0", "headGroupSpec": {"template": pod("ray-head")}, "workerGroupSpecs": [worker]}


def job_spec() -> Body:
    return {"entrypoint": "python train.py", "rayClusterSpec": cluster_spec()}


SPECS: Mapping[str, Any] = {
    "RayCluster": cluster_spec,
    "RayJob": job_spec,
    "RayService": lambda: {"serveConfigV2": "applications: []", "rayClusterConfig": cluster_spec()},
    "RayCronJob": lambda: {"schedule": "@daily", "jobTemplate": job_spec()},
}

CLUSTER_AT = {
    "RayCluster": "spec",
    "RayJob": "spec rayClusterSpec",
    "RayService": "spec rayClusterConfig",
    "RayCronJob": "spec jobTemplate rayClusterSpec",
}
"""Path of the RayCluster spec in each kind."""


def manifest(kind: str) -> Body:
    """The smallest valid manifest of a kind."""
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "ray"}, "spec": SPECS[kind]()}


def edited(body: Body, edits: Mapping[str, Any]) -> Body:
    """The manifest with some values replaced. A place is its keys and indexes, separated by spaces."""
    made = copy.deepcopy(body)
    for place, value in edits.items():
        put(made, place, value if value is GONE else copy.deepcopy(value))
    return made


def put(body: Body, place: str, value: Any) -> None:
    """Puts a value into a manifest, with missing parent mappings and lists."""
    parts = path_of(place)
    at: Any = body
    for part, following in itertools.pairwise(parts):
        empty: Any = [] if isinstance(following, int) else {}
        at = at.setdefault(part, empty) if isinstance(at, dict) else at[part]
    if value is GONE:
        at.pop(parts[-1], None)
    elif isinstance(at, list) and parts[-1] == len(at):
        at.append(value)
    else:
        at[parts[-1]] = value


def path_of(place: str) -> tuple[str | int, ...]:
    return tuple(int(part) if part.isdigit() else part for part in place.split())
