"""Settings of a tenant's namespace, quota and limits, and the objects that they are rendered into."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from core.body import Body
from core.nodes import GPU_RESOURCE
from core.pods import POD_SECURITY_PREFIX, PodSecurityLevel, level_labels
from core.problems import Problem, Problems
from core.quantities import amount
from core.types import CheckedSettings, LabelKey, Labels, Memory, Quantity, QuantityOrZero, Settings

_OBJECTS = (
    *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)

_COMPUTE = (
    *("cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage"),
    *("requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"),
)
"""With _OBJECTS, all names without a domain (Kubernetes 1.36: helpers.go in pkg/apis/core, standardQuotaResources)."""

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


OWN = "ray-platform"
"""Prefix of the labels with a namespace's tenant and owner."""

TENANT_LABEL = f"{OWN}/tenant"

_RESERVED_PREFIXES = {
    f"{POD_SECURITY_PREFIX}/": "podSecurity",
    f"{OWN}/": "owner and costCenter",
    "kubernetes.io/metadata.name": "namespace",
}
"""Prefixes of label keys, and the settings that determine them."""


def _not_decided_otherwise(labels: dict[str, str]) -> dict[str, str]:
    problems = [
        Problem((key,), value, f"label {key!r} follows from {setting}: set that instead", "reserved-label")
        for key, value in labels.items()
        for prefix, setting in _RESERVED_PREFIXES.items()
        if key.startswith(prefix)
    ]
    if problems:
        raise Problems(problems)
    return labels


NamespaceLabels = Annotated[Labels, AfterValidator(_not_decided_otherwise)]
"""Labels of a namespace, except those of other settings."""

Count = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
"""A number of objects."""


ENTRIES = {
    "gpus": (f"requests.{GPU_RESOURCE}",),
    "cpu": ("requests.cpu",),
    "memory": ("requests.memory", "limits.memory"),
    "pods": ("pods",),
    "rayClusters": ("count/rayclusters.ray.io",),
    "storage": ("requests.storage",),
    "persistentVolumeClaims": ("persistentvolumeclaims",),
    "loadBalancers": ("services.loadbalancers",),
    "nodePorts": ("services.nodeports",),
}
"""Keys of a quota, and their entries in a ResourceQuota."""


class QuotaSettings(CheckedSettings):
    """The maximum usage of a tenant: a ResourceQuota of its namespace. Entries that are not set have no limit.

    CPUs are counted by requests, because a container can use idle CPUs beyond its request without harm to others.
    Memory is counted by requests and limits, because used memory cannot be reclaimed.
    """

    gpus: Count | None = None
    """GPUs (`requests.nvidia.com/gpu`). Of another gpuResource set `hard: {requests.amd.com/gpu: 8}`."""

    cpu: Quantity | None = None
    """CPUs (`requests.cpu`)."""

    memory: Memory | None = None
    """Memory (`requests.memory` and `limits.memory`)."""

    pods: Count | None = None
    """Pods that have not ended."""

    ray_clusters: Count | None = None
    """RayClusters, including those of RayJobs and RayServices (`count/rayclusters.ray.io`)."""

    storage: Memory | None = None
    """Storage of all PersistentVolumeClaims (`requests.storage`)."""

    persistent_volume_claims: Count | None = None
    """PersistentVolumeClaims (`persistentvolumeclaims`)."""

    load_balancers: Count = 0
    """Services of type LoadBalancer (`services.loadbalancers`): each opens a port to the outside, and may cost
    money."""

    node_ports: Count = 0
    """Node ports of Services (`services.nodeports`). A LoadBalancer uses one for each of its ports, unless it sets
    `allocateLoadBalancerNodePorts: false`."""

    hard: dict[LabelKey, QuantityOrZero] = Field(default_factory=dict)
    """Other entries of the ResourceQuota, with Kubernetes' names: `{count/rayjobs.ray.io: 20}`."""

    def problems(self) -> Iterator[Problem]:
        keys = {entry: key for key, entries in ENTRIES.items() for entry in entries}
        for entry in self.hard:
            if entry in keys:
                message = f"is the same as {keys[entry]}: set that"
                yield Problem(("hard", entry), self.hard[entry], message, "said-twice")
        yield from (each.below(("hard",)) for each in problems_of_entries(self.hard))


class Amounts(Settings):
    """CPU and memory of a container."""

    cpu: Quantity | None = None
    """CPUs."""

    memory: Memory | None = None
    """Memory."""


class LimitSettings(CheckedSettings):
    """Defaults and bounds of a container's resources: a LimitRange of the namespace."""

    default: Amounts = Amounts()
    """Limits of a container that sets none."""

    default_request: Amounts = Amounts()
    """Requests of a container that sets neither requests nor limits. Default: its limits."""

    max: Amounts = Amounts()
    """The maximum of a container."""

    min: Amounts = Amounts()
    """The minimum request of a container."""

    def problems(self) -> Iterator[Problem]:
        for resource in ("cpu", "memory"):
            parts = {"min": self.min, "defaultRequest": self.default_request, "default": self.default, "max": self.max}
            configured = [(key, value) for key, part in parts.items() if (value := getattr(part, resource)) is not None]
            for (key, value), (next_key, next_value) in pairwise(configured):
                if amount(value) > amount(next_value):
                    message = f"{key} {value} is more than {next_key} {next_value}: lower {key} or raise {next_key}"
                    yield Problem((key, resource), value, message, "limits-in-order")


DEFAULT_LIMITS = LimitSettings(default=Amounts(memory="512Mi"), default_request=Amounts(cpu="100m"))
"""The limits with a quota, if the stack file sets none: without them Kubernetes refuses each pod without the resources
that the quota counts. They are meant for sidecars; Ray's own containers must set their resources."""

NAME = "ray-platform"
"""Name of the ResourceQuota and of the LimitRange. A namespace may also have others."""


def namespace(
    name: str,
    tenant: str,
    pod_security: PodSecurityLevel,
    owner: str | None = None,
    cost_center: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Body:
    """The Namespace, with labels for its Pod Security level and its owner."""
    whose = {"tenant": tenant, "owner": owner, "cost-center": cost_center}
    own = {f"{OWN}/{key}": value for key, value in whose.items() if value is not None}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**(labels or {}), **own, **level_labels(pod_security)}},
    }


def of_tenants(namespaces: Sequence[str] | None) -> Body:
    """Selects tenants' namespaces, as an expression of a label selector. `namespaces`: None if the stack creates all of
    them. Then their label selects them, and a further tenant changes no selector."""
    if namespaces is None:
        return {"key": TENANT_LABEL, "operator": "Exists"}
    return named("In", namespaces)


def named(operator: Literal["In", "NotIn"], namespaces: Iterable[str]) -> Body:
    """Selects namespaces by a label that each has and nobody can change."""
    return {"key": "kubernetes.io/metadata.name", "operator": operator, "values": sorted(set(namespaces))}


def hard(settings: QuotaSettings) -> dict[str, str]:
    """The entries of a ResourceQuota."""
    configured = settings.model_dump(by_alias=True, exclude_none=True)
    entries = {
        entry: str(configured[key]) for key, entries in ENTRIES.items() if key in configured for entry in entries
    }
    return {**entries, **settings.hard}


OF_RUNS = {"count/rayjobs.ray.io": 500, "count/jobs.batch": 500}
"""The most objects that users of job templates, and those with `submitJobs`, may make."""

OF_RUNS_WITH_CODE = {**OF_RUNS, "count/configmaps": 500}
"""The same, where runs bring their code."""

OF_OBJECTS = {
    **OF_RUNS_WITH_CODE,
    "count/rayclusters.ray.io": 500,
    "count/rayservices.ray.io": 100,
    "count/raycronjobs.ray.io": 100,
    "count/services": 1000,
    "count/secrets": 1000,
    "count/persistentvolumeclaims": 500,
    "count/poddisruptionbudgets.policy": 500,
    "count/deployments.apps": 500,
    "count/pods": 10_000,
}
"""The most objects of admins and of code with `rayDeployer`, also by what KubeRay makes for them. The API server and
the operator keep all of them in memory, for all tenants."""

COUNTS = f"{NAME}-objects"
"""Name of the ResourceQuota of the numbers of objects that the stack file does not set."""


def object_counts(settings: QuotaSettings | None, most: Mapping[str, int]) -> Body | None:
    """The ResourceQuota of the numbers of objects; None if it has no entries. `most`: the default ones.

    It is made after the tenant's own objects, which do not wait until Kubernetes counts: `up` alone does
    (resource_quota), because until then objects of others are refused.
    """
    configured = hard(settings).keys() if settings else set[str]()
    same = {"count/persistentvolumeclaims": "persistentvolumeclaims", "count/pods": "pods"}
    entries = {each: str(number) for each, number in most.items() if not {each, same.get(each, each)} & set(configured)}
    if not entries:
        return None
    metadata = {"name": COUNTS, **_waits_for(each for each in entries if each in _SERVED)}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": entries}}


_SERVED = tuple(f"count/{kind}.ray.io" for kind in ("rayclusters", "rayjobs", "rayservices"))
"""Entries of kinds that every supported KubeRay has."""


def _waits_for(entries: Iterable[str]) -> Body:
    """Annotations with which Pulumi waits until Kubernetes counts; none if there are no entries."""
    known = [f"jsonpath={{.status.used['{entry}']}}" for entry in entries]
    return {"annotations": {"pulumi.com/waitFor": json.dumps(known)}} if known else {}


def counted(settings: QuotaSettings) -> list[str]:
    """The entries that count objects of KubeRay's kinds."""
    return [entry for entry in hard(settings) if entry.startswith("count/") and entry.endswith(".ray.io")]


def quota(settings: QuotaSettings | None, limits: LimitSettings | None) -> dict[str, Body]:
    """The ResourceQuota and the LimitRange, if they are set."""
    bodies = {
        "resource-quota": resource_quota(settings) if settings else None,
        "limit-range": limit_range(limits) if limits else None,
    }
    return {part: body for part, body in bodies.items() if body is not None}


def resource_quota(settings: QuotaSettings) -> Body:
    """The ResourceQuota. Pulumi waits until Kubernetes counts objects of KubeRay's kinds.

    Until then the API server refuses these objects ("status unknown for quota"; apiserver
    pkg/admission/plugin/resourcequota/controller.go). Kubernetes looks for new kinds every 30 seconds, and counts their
    objects when it next syncs the quota (kube-controller-manager --resource-quota-sync-period: 5m).
    """
    metadata: Body = {"name": NAME, **_waits_for(counted(settings))}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": hard(settings)},
    }


def limit_range(settings: LimitSettings) -> Body | None:
    """The LimitRange for containers; None if it has no values."""
    parts = settings.model_dump(by_alias=True, exclude_none=True)
    configured = {key: amounts for key, amounts in parts.items() if amounts}
    if not configured:
        return None
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": NAME},
        "spec": {"limits": [{"type": "Container", **configured}]},
    }
