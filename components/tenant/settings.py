"""What a stack file may say about a tenant's namespace, and about how much the tenant may use."""

from itertools import pairwise
from typing import Annotated, Self

from pydantic import AfterValidator, Field, Strict, model_validator

from core import pod_security
from core.nodes import GPU_RESOURCE
from core.problems import Problem, Problems
from core.quantities import amount
from core.types import LabelKey, Labels, Memory, Quantity, QuantityOrZero, Settings

OWN = "ray-platform"
"""Prefix of the labels that say whose a namespace is."""

_SAID_OTHERWISE = {
    f"{pod_security.PREFIX}/": "podSecurity",
    f"{OWN}/": "owner and costCenter",
    "kubernetes.io/metadata.name": "namespace",
}
"""Beginnings of label keys, and the settings that decide them."""


def _not_decided_otherwise(labels: dict[str, str]) -> dict[str, str]:
    problems = [
        Problem((key,), value, f"label {key!r} follows from {setting}: set that instead", "reserved-label")
        for key, value in labels.items()
        for prefix, setting in _SAID_OTHERWISE.items()
        if key.startswith(prefix)
    ]
    if problems:
        raise Problems(problems)
    return labels


NamespaceLabels = Annotated[Labels, AfterValidator(_not_decided_otherwise)]
"""Labels of a namespace, less those that follow from other settings."""

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
"""Keys of a quota, and the entries of a ResourceQuota that they become."""


class QuotaSettings(Settings):
    """The most that a tenant may have at a time: a ResourceQuota of its namespace. What is not said has no limit.

    CPUs are counted by requests, because a container that takes idle CPUs beyond its request takes them from nobody;
    memory by requests and by limits, because memory cannot be taken back.
    """

    gpus: Count | None = None
    """GPUs (`requests.nvidia.com/gpu`)."""

    cpu: Quantity | None = None
    """CPUs (`requests.cpu`)."""

    memory: Memory | None = None
    """Memory (`requests.memory` and `limits.memory`)."""

    pods: Count | None = None
    """Pods that have not ended."""

    ray_clusters: Count | None = None
    """RayClusters, those of RayJobs and RayServices among them (`count/rayclusters.ray.io`)."""

    storage: Memory | None = None
    """Storage of all PersistentVolumeClaims (`requests.storage`)."""

    persistent_volume_claims: Count | None = None
    """PersistentVolumeClaims (`persistentvolumeclaims`)."""

    load_balancers: Count = 0
    """Services of type LoadBalancer (`services.loadbalancers`): each lets the outside in, and may cost."""

    node_ports: Count = 0
    """Ports of nodes that Services open (`services.nodeports`). A LoadBalancer takes one for each of its ports, unless
    it sets `allocateLoadBalancerNodePorts: false`."""

    hard: dict[LabelKey, QuantityOrZero] = Field(default_factory=dict)
    """Further entries of the ResourceQuota, in Kubernetes' words: `{count/rayjobs.ray.io: 20}`."""

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> Self:
        keys = {entry: key for key, entries in ENTRIES.items() for entry in entries}
        problems = [
            Problem(("hard", entry), self.hard[entry], f"is what {keys[entry]} says: set that", "said-twice")
            for entry in self.hard
            if entry in keys
        ]
        if problems:
            raise Problems(problems)
        return self


class Amounts(Settings):
    """CPU and memory of a container."""

    cpu: Quantity | None = None
    """CPUs."""

    memory: Memory | None = None
    """Memory."""


class LimitSettings(Settings):
    """What a container gets that does not say it, and what it must keep to: a LimitRange of the namespace."""

    default: Amounts = Amounts()
    """Limits of a container that says none."""

    default_request: Amounts = Amounts()
    """Requests of a container that says neither these nor limits. Default: its limits."""

    max: Amounts = Amounts()
    """The most that a container may have."""

    min: Amounts = Amounts()
    """The least that a container must ask for."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        problems = []
        for resource in ("cpu", "memory"):
            parts = {"min": self.min, "defaultRequest": self.default_request, "default": self.default, "max": self.max}
            said = [(key, value) for key, part in parts.items() if (value := getattr(part, resource)) is not None]
            for (key, value), (next_key, next_value) in pairwise(said):
                if amount(value) > amount(next_value):
                    message = f"{key} {value} is more than {next_key} {next_value}: lower {key} or raise {next_key}"
                    problems.append(Problem((key, resource), value, message, "limits-in-order"))
        if problems:
            raise Problems(problems)
        return self


DEFAULT_LIMITS = LimitSettings(default=Amounts(memory="512Mi"), default_request=Amounts(cpu="100m"))
"""With a quota, where the stack file says no limits: without them Kubernetes refuses each pod that leaves out what the
quota counts. A side container's size; Ray's own containers have to say theirs."""
