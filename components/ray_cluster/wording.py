"""Problems that KubeRay's rules find in a rendered RayCluster, in terms of the stack file. Pure functions."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.logs import manifests as logs
from components.ray_cluster.pods import TOKEN_VOLUME
from components.ray_cluster.settings import RayClusterSettings
from components.redis_gateway.manifests import VOLUME
from components.tls.manifests import volumes
from core.problems import Problem

_OF_KUBERAY = {"redis-annotation", "redis-address-env", "redis-password", "redis-username", "redis-namespace"}
"""KubeRay's own rules on settings that conflict with its options (kuberay/features.py)."""

_VOLUMES = {
    TOKEN_VOLUME: "the token of Ray's autoscaler",
    VOLUME: "the password of Redis",
    logs.RAY_VOLUME: "the log files of Ray",
    **dict.fromkeys((logs.NAME, logs.STATE_VOLUME, logs.CA_VOLUME), "the files of the log collector"),
    **{each["name"]: "the certificates of the cluster" for each in volumes("")},
}
"""Volumes that the stack adds to pods, with their content."""


def reworded(settings: RayClusterSettings, problem: Problem, body: Mapping[str, Any]) -> Problem:
    """A problem from KubeRay's rules, in terms of the stack file if it is about a part that the stack adds."""
    match problem.path:
        case ("spec", "workerGroupSpecs", int(index), "template") if problem.rule == "required-field":
            return _no_such_group(body["spec"]["workerGroupSpecs"], index, problem)
        case ("spec", *above, "volumes", int()) if problem.rule == "duplicate-item":
            return _name_of_ours(_at(body["spec"], above)["volumes"], problem)
    if not settings.fault_tolerance or problem.rule not in _OF_KUBERAY:
        return problem
    message = "conflicts with faultTolerance, which sets all that Ray needs for Redis: remove it"
    return replace(problem, message=message)


def _at(body: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        body = body[step]
    return body


def _name_of_ours(named: Sequence[Any], problem: Problem) -> Problem:
    """Two volumes of a name. The stack adds its own after the others, so the first one is to be renamed."""
    name = problem.value.get("name")
    if not isinstance(name, str) or name not in _VOLUMES:
        return problem
    first = next(index for index, each in enumerate(named) if isinstance(each, Mapping) and each.get("name") == name)
    message = f"{name!r} is the volume with {_VOLUMES[name]}, which the stack adds: use another name"
    return replace(problem, path=(*problem.path[:-1], first, "name"), value=name, message=message)


def _no_such_group(groups: Sequence[Any], index: int, problem: Problem) -> Problem:
    """A group that exists only in overrides, and there in part."""
    name = groups[index].get("groupName")
    whole = [each for each in groups if isinstance(each, Mapping) and "template" in each]
    names = [str(each.get("groupName")) for each in whole]
    near = difflib.get_close_matches(str(name), names, 1)
    advice = f"did you mean {near[0]!r}? Else" if near else f"use one of {', '.join(names)}, or" if names else "else"
    message = f"the cluster has no worker group {name!r} to merge this into: {advice} add the template of a new group"
    return replace(problem, path=(*problem.path[:3], "groupName"), value=name, message=message)
