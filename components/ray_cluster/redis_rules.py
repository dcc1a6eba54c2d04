"""What would break a fault tolerant RayCluster: found in its body, as the pods would have it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from core.problems import Path, Problem

from ..redis_gateway.manifests import METRICS_PORT, NAME, PORT, VOLUME
from .fault_tolerance import RECONNECT_SECONDS, RECONNECT_TIMEOUT, RedisPlace, beside_head
from .settings import RayClusterSettings

_OF_KUBERAY = {"redis-annotation", "redis-address-env", "redis-password", "redis-username", "redis-namespace"}
"""KubeRay's own rules on what may not stand beside its options (kuberay/gcs_fault_tolerance.py)."""

_STORAGE_NAMESPACE = "RAY_external_storage_namespace"
"""KubeRay does not overrule it, and then cleans up another one (pod.go: configureGCSFaultTolerance)."""

_HEAD: Path = ("spec", "headGroupSpec")


def of_the_stack(settings: RayClusterSettings, problem: Problem) -> Problem:
    """What KubeRay finds of a cluster whose options the stack made, in the words of the stack file."""
    if not settings.fault_tolerance or problem.rule not in _OF_KUBERAY:
        return problem
    message = "stands beside faultTolerance, which tells Ray all that it has to know of Redis: remove it"
    return replace(problem, message=message)


def redis_problems(
    settings: RayClusterSettings, place: RedisPlace | None, body: Mapping[str, Any]
) -> Iterator[Problem]:
    """All that is wrong with a body that KubeRay takes; paths in it."""
    if not settings.fault_tolerance or place is None:
        return
    spec = body["spec"]
    yield from _gateway(settings, place, spec["headGroupSpec"]["template"]["spec"])
    if found := _variable(_HEAD, spec["headGroupSpec"], _STORAGE_NAMESPACE):
        message = "the stack gives each RayCluster a storage namespace that no other ever has: remove the variable"
        yield Problem(found[0], found[1], message, "redis-namespace")
    yield from _reconnect_timeouts(spec)


def _gateway(settings: RayClusterSettings, place: RedisPlace, pod: Mapping[str, Any]) -> Iterator[Problem]:
    """What a pod template has changed of what the head has for Redis, or taken from it."""
    made, at = beside_head(settings, place), (*_HEAD, "template", "spec")
    for kind, wanted, name in (
        ("initContainers", made.init_containers, NAME),
        ("volumes", made.volumes, VOLUME),
    ):
        there = [(index, each) for index, each in enumerate(pod.get(kind) or ()) if each.get("name") == name]
        if wanted and [each for _, each in there] != list(wanted):
            where = (*at, kind, there[-1][0]) if there else (*at, kind)
            message = (
                f"{name!r} of the head's {kind} is the stack's, for faultTolerance: use another name, or say what you "
                "want of the gateway in redis.gateway"
            )
            yield Problem(where, name, message, "redis-gateway-changed")
    if place.gateway is None:
        return
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(kind) or ()):
            if kind == "containers" and container.get("name") == NAME:
                message = f"the name {NAME!r} is that of the gateway beside the head: use another"
                yield Problem((*at, kind, index, "name"), NAME, message, "redis-gateway-changed")
            for position, port in enumerate(container.get("ports") or ()):
                if container.get("name") != NAME and port.get("containerPort") in (PORT, METRICS_PORT):
                    number = port["containerPort"]
                    message = f"port {number} of the head's pod is the Redis gateway's: use another"
                    yield Problem(
                        (*at, kind, index, "ports", position, "containerPort"), number, message, "redis-gateway-port"
                    )


def _reconnect_timeouts(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Workers that gave up before the head would end, with all that runs on them, while the head comes back
    (kuberay#1036)."""
    said = _variable(_HEAD, spec["headGroupSpec"], RECONNECT_TIMEOUT)
    of_head = _seconds(said[1]) if said else RECONNECT_SECONDS["head"]
    for index, group in enumerate(spec.get("workerGroupSpecs") or ()):
        found = _variable(("spec", "workerGroupSpecs", index), group, RECONNECT_TIMEOUT)
        of_workers = _seconds(found[1]) if found else RECONNECT_SECONDS["worker"]
        where = found or said
        if where and of_head is not None and of_workers is not None and of_workers <= of_head:
            message = (
                f"{RECONNECT_TIMEOUT} is {of_head} in the head and {of_workers} in worker group "
                f"{group['groupName']!r}, whose workers would end while the head comes back: leave it out (then it is "
                f"{RECONNECT_SECONDS['head']} and {RECONNECT_SECONDS['worker']}), or give workers more than the head"
            )
            yield Problem(where[0], where[1], message, "redis-reconnect-order")
            return


def _variable(path: Path, group: Mapping[str, Any], name: str) -> tuple[Path, str] | None:
    """Where Ray's container of a group has an environment variable, and its value."""
    for index, variable in enumerate(group["template"]["spec"]["containers"][0].get("env") or ()):
        if variable["name"] == name:
            return (*path, "template", "spec", "containers", 0, "env", index), str(variable.get("value", ""))
    return None


def _seconds(value: str) -> int | None:
    """None: no number, or one that only the pod will know."""
    return int(value) if value.isascii() and value.isdigit() else None
