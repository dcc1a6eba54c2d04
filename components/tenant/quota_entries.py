"""Entries of a ResourceQuota that Kubernetes would refuse, or accept and count nothing for."""

import difflib
import re
from collections.abc import Iterator, Mapping

from core.nodes import GPU_RESOURCE
from core.problems import Problem
from core.quantities import amount

_OBJECTS = (
    *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)

_COMPUTE = (
    *("cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage"),
    *("requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"),
)
"""With _OBJECTS, all names without a domain (Kubernetes 1.34: helpers.go in pkg/apis/core, standardQuotaResources)."""

_OF_CLASSES = re.compile(
    r".+\.(storageclass|volumeattributesclass)\.storage\.k8s\.io/(requests\.storage|persistentvolumeclaims)"
    r"|.+\.deviceclass\.resource\.k8s\.io/devices"
)
"""Entries of a class of volumes or devices (pkg/quota/v1/evaluator/core)."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "": (
        *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "endpoints"),
        *("persistentvolumeclaims", "serviceaccounts", "events", "limitranges", "podtemplates"),
    ),
    "apps": ("deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"),
    "batch": ("jobs", "cronjobs"),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "ray.io": ("rayclusters", "rayjobs", "rayservices", "raycronjobs"),
}
"""Kinds that `count/` counts, by groups whose kinds are known. Pulumi waits until those of `ray.io` are counted."""


def problems_of_entries(hard: Mapping[str, str]) -> Iterator[Problem]:
    """The problems of `quota.hard`; paths below it."""
    for entry, most in hard.items():
        if (meant := _meant(entry)) is not None:
            hint = f"did you mean {meant!r}?" if meant else f"use one of {', '.join((*_COMPUTE, *_OBJECTS))}"
            message = f"Kubernetes counts nothing for {entry!r} in a quota: {hint}"
            yield Problem((entry,), most, message, "quota-entry")
        elif (entry in _OBJECTS or entry.startswith("count/")) and amount(most) % 1:
            yield Problem((entry,), most, f"{most!r} is not a number of objects: write a whole one", "quota-entry")


def _meant(entry: str) -> str | None:
    """What an entry that counts nothing may mean, empty if that is not clear; None if it counts something."""
    domain, slash, name = entry.partition("/")
    if domain == "count":
        return _meant_kind(name)
    if not slash:
        known = entry in _OBJECTS or entry in _COMPUTE or re.match(r"(requests\.)?hugepages-[0-9]", entry)
        return None if known else next(iter(difflib.get_close_matches(entry, (*_COMPUTE, *_OBJECTS), 1)), "")
    if _OF_CLASSES.fullmatch(entry):
        return None
    resource = entry.removeprefix("requests.").removeprefix("limits.")
    if resource.lower().rstrip("s") == GPU_RESOURCE:
        resource = GPU_RESOURCE
    # The only form for extended resources (pkg/quota/v1/evaluator/core/pods.go: podComputeUsageHelper).
    return None if entry == (counted := f"requests.{resource}") else counted


def _meant_kind(name: str) -> str | None:
    kind, _, group = name.partition(".")
    known = _KINDS.get(group)
    if known is None or kind in known:
        return None
    near = difflib.get_close_matches(kind, known, 1)
    return f"count/{'.'.join(filter(None, (near[0], group)))}" if near else ""
