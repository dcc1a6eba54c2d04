"""What the API server returned: objects by kind, and what could not be read. Data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from core.body import Body


@dataclass(frozen=True)
class Found:
    """Objects of a namespace, or of the whole cluster."""

    objects: Mapping[str, Sequence[Body]] = field(default_factory=dict)
    """By the plural of their kind."""

    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Why a kind could not be read, by its plural."""

    def all(self, plural: str) -> Sequence[Body]:
        """The objects of a kind; none if it could not be read."""
        return self.objects.get(plural, ())

    def absence(self, plural: str) -> tuple[bool, str]:
        """Whether it is known that an object of the stack file, which is not here, does not exist; and the reason for
        people."""
        if why := self.unreadable.get(plural):
            return False, f"it cannot be read: {why}"
        return True, "it is in the stack file and not in the cluster: `up` creates it"


@dataclass(frozen=True)
class Workload:
    """A Deployment or StatefulSet of the platform."""

    plural: Literal["deployments", "statefulsets"]
    namespace: str
    name: str

    @property
    def kind(self) -> str:
        return "Deployment" if self.plural == "deployments" else "StatefulSet"

    def is_about(self, event: Body) -> bool:
        """Whether an event of its namespace is about it, or about a ReplicaSet of the Deployment, which makes its
        pods."""
        about = event["involvedObject"]
        kind, name = about.get("kind"), str(about.get("name"))
        of_replica_set = kind == "ReplicaSet" and name.rpartition("-")[0] == self.name
        return (kind, name) == (self.kind, self.name) or (self.plural == "deployments" and of_replica_set)


def lacks_pods(workload: Body) -> bool:
    """Whether a Deployment or StatefulSet has fewer pods than it should have, ready or not."""
    return int((workload.get("status") or {}).get("replicas") or 0) < int(workload["spec"].get("replicas", 1))


@dataclass(frozen=True)
class Usage:
    """What the stack's own Prometheus records of a tenant's GPUs. A field is None without such a record, as of costs
    without prices."""

    gpus_held: float | None = None
    gpus_used: float | None = None
    """Those that tasks and actors have requested."""

    hours_held: float | None = None
    hours_used: float | None = None
    hours_wasted: float | None = None
    """GPU-hours of the last 24 hours."""

    cost: float | None = None
    """Of the last 24 hours, in the currency of `gpuHourPrice`."""


@dataclass(frozen=True)
class Live:
    """Everything that was read for one report."""

    at: datetime

    namespaces: Mapping[str, Found]
    """By the name of the namespace."""

    shared: Found = Found()
    """Queues, which have no namespace."""

    operator_pods: tuple[Body, ...] | None = None
    """None: this account must not read them."""

    workloads: Mapping[Workload, Body | None] = field(default_factory=dict)
    """Those of the platform that this account may read; None if one does not exist. The operator's only if it has no
    pod."""

    refusals: Mapping[Workload, str] = field(default_factory=dict)
    """The newest warning about those that lack pods, if this account may read events there."""

    usages: Mapping[str, Usage] = field(default_factory=dict)
    """By namespace, of the tenants whose metrics this account may read."""


def owned_by(owner: Body, objects: Iterable[Body]) -> list[Body]:
    """The objects that another one owns: the Workload or the PodGroup of a RayCluster or RayJob."""
    uid = owner["metadata"].get("uid")
    return [
        each
        for each in objects
        if any(reference.get("uid") == uid for reference in each["metadata"].get("ownerReferences") or ())
    ]


def seconds_between(start: str | None, end: datetime) -> int | None:
    """Whole seconds from a time in RFC 3339; None without one."""
    return max(int((end - datetime.fromisoformat(start)).total_seconds()), 0) if start else None
