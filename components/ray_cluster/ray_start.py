"""What `ray start` refuses in the pods of a rendered RayCluster, or would offer without having it. Pure functions."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from components.ray_cluster.manifests import head_ports
from core.body import ReadOnlyBody
from core.problems import Path, Problem
from core.quantities import amount, shown
from kuberay.ray_start import FALSE, LEAST_MEMORY, LEAST_OBJECT_STORE, is_gpu, problems_of_labels, problems_of_params
from kuberay.rules import problem

_HEAD: Path = ("spec", "headGroupSpec")


def problems_of_ray_start(spec: ReadOnlyBody, group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """What `ray start` refuses, or would offer without having it."""
    params, at = group.get("rayStartParams") or {}, (*path, "rayStartParams")
    # Overrides may remove the version.
    yield from problems_of_params(params, spec.get("rayVersion"), path == _HEAD, at)
    yield from problems_of_labels(group.get("labels") or {}, spec.get("rayVersion"), (*path, "labels"))
    yield from _without_memory(group, path)
    if path == _HEAD:
        yield from _elsewhere(spec, params, at)
    yield from _without_gpus(group, params, at)


_STORE = "object-store-memory"

_BEYOND = {
    _STORE: "the object store would be larger than /dev/shm, and Ray does not start",
    "memory": "tasks would get memory that is not there",
}
"""Flags with more bytes than the container has. KubeRay gives /dev/shm the container's memory (pod.go: addEmptyDir),
and Ray compares its store with it (python/ray/_private/services.py: determine_plasma_store_config)."""

_LEAST = shown("memory", Decimal(LEAST_MEMORY))


def _without_gpus(group: ReadOnlyBody, params: Mapping[str, str], at: Path) -> Iterator[Problem]:
    """GPUs that Ray would offer and the container does not have. Of shared ones, of other makers' and of claims
    (DRA) KubeRay counts none, so that the flag is right there."""
    offered, resources = params.get("num-gpus", ""), group["template"]["spec"]["containers"][0].get("resources") or {}
    limits = resources.get("limits") or {}
    uncounted = [name for name in limits if "/" in name and not is_gpu(name)]
    gpus = sum(int(amount(str(value))) for name, value in limits.items() if is_gpu(name))
    if offered.isdecimal() and int(offered) > gpus and not uncounted and not resources.get("claims"):
        message = (
            f"Ray would offer {offered} GPUs, and its container has {gpus}: remove it, so that Ray offers those of the "
            "container"
        )
        yield problem("ray-start-gpus", (*at, "num-gpus"), offered, message)


def _without_memory(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Too little memory for Ray to start in a pod of a group; `path`: of the group."""
    ray = group["template"]["spec"]["containers"][0]
    limit = ((ray.get("resources") or {}).get("limits") or {}).get("memory")
    at = (*path, "template", "spec", "containers", 0, "resources", "limits", "memory")
    if limit is not None and amount(str(limit)) < LEAST_MEMORY:
        message = f"Ray does not start with {limit} of memory, and needs at least {_LEAST}: raise it"
        yield problem("ray-start-memory", at, limit, message)
    params = group.get("rayStartParams") or {}
    store = params.get(_STORE, "")
    if store.isdecimal() and int(store) < LEAST_OBJECT_STORE:
        message = f"`ray start` takes at least {LEAST_OBJECT_STORE} bytes: raise it, or remove it"
        yield problem("ray-start-memory", (*path, "rayStartParams", _STORE), store, message)
    for flag, harm in _BEYOND.items() if limit is not None else ():
        given = params.get(flag, "")
        if given.isdecimal() and int(given) > amount(str(limit)):
            message = f"{harm}, because the container has {limit}: lower it, or remove it"
            yield problem("ray-start-memory", (*path, "rayStartParams", flag), given, message)


_PORTS_OF_FLAGS = {
    "port": "gcs-server",
    "dashboard-port": "dashboard",
    "ray-client-server-port": "client",
    "metrics-export-port": "metrics",
}
"""Flags of the head with a port, and KubeRay's names of these ports."""

_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 (inside the pod; a Service and a token protect it)


def _elsewhere(spec: ReadOnlyBody, params: Mapping[str, str], at: Path) -> Iterator[Problem]:
    """Flags with which the head does not listen where workers, probes, the operator and Services look for it."""
    ports = head_ports(spec)
    for flag, name in _PORTS_OF_FLAGS.items():
        given = params.get(flag, "")
        if given.isdecimal() and int(given) != ports[name]:
            message = (
                f"workers, probes, the operator and Services use port {ports[name]}: remove it, or give the head's "
                f"container in podTemplate a port {given} named {name}"
            )
            yield Problem((*at, flag), given, message, "head-port")
    if params.get("include-dashboard", "").lower() in FALSE:
        message = "KubeRay's probes and jobs ask the dashboard, so the head would never be ready: remove it"
        yield Problem((*at, "include-dashboard"), params["include-dashboard"], message, "head-port")
    if (host := params.get("dashboard-host", _ANYWHERE[0])) not in _ANYWHERE:
        message = f"only {host} would reach the dashboard, and jobs would not: remove it"
        yield Problem((*at, "dashboard-host"), host, message, "head-port")
