"""The one walk: every pod template and every RayCluster of an object, wherever it stands.

What operators make of them, such as the pods that KubeRay adds containers to, is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from core.pod_templates import POD_TEMPLATES, RAY, RAY_CLUSTERS, SUBMITTERS, VOLCANO_JOB

from .values import Node, NotKnownYetError, Object


@dataclass(frozen=True, eq=False)
class RayCluster:
    """The spec of a RayCluster: its own, a RayJob's or a RayService's."""

    owner: Object
    spec: Node

    @property
    def standalone(self) -> bool:
        """Whether it is a RayCluster of its own."""
        return self.owner.kind == "RayCluster"

    @property
    def scales(self) -> bool:
        """Whether Ray's autoscaler runs beside the head. Raises NotKnownYetError."""
        return self.spec.at("enableInTreeAutoscaling").value is True

    @property
    def alone(self) -> bool:
        """Whether its head is all that it has, and does the work. Raises NotKnownYetError."""
        return not any(self.spec.at("workerGroupSpecs").items())

    @property
    def head(self) -> Pod:
        """The head's pod."""
        group = self.spec.at("headGroupSpec")
        return Pod(self.owner, group.at("template"), "head", self, group)

    def workers(self) -> Iterator[Pod]:
        """The pods of the worker groups. Raises NotKnownYetError."""
        for group in self.spec.at("workerGroupSpecs").items():
            yield Pod(self.owner, group.at("template"), "worker", self, group)

    def pods(self) -> Iterator[Pod]:
        """All its pods. Raises NotKnownYetError."""
        yield self.head
        yield from self.workers()


@dataclass(frozen=True, eq=False)
class Pod:
    """A pod, or the template of pods."""

    owner: Object
    template: Node
    """Its metadata and spec."""

    role: str = "pod"
    """`head`, `worker` and `submitter` of Ray's; `pod` for all others."""

    ray: RayCluster | None = None
    """Of which RayCluster it is a node."""

    group: Node | None = None
    """KubeRay's head or worker group."""

    @property
    def spec(self) -> Node:
        """Its spec. Raises NotKnownYetError."""
        return self.template.at("spec")

    @property
    def first(self) -> Container:
        """The first container, which in pods of Ray is Ray's. Raises NotKnownYetError."""
        return Container(self, self.spec.at("containers", 0), "container")

    def containers(self) -> Iterator[Container]:
        """Its containers, those before them, and the autoscaler's. Raises NotKnownYetError."""
        for role, field_ in (("init", "initContainers"), ("container", "containers")):
            for node in self.spec.at(field_).items():
                yield Container(self, node, role)
        if self.role == "head" and self.ray and self.ray.scales:
            yield Container(self, self.ray.spec.at("autoscalerOptions"), "autoscaler")


@dataclass(frozen=True, eq=False)
class Container:
    """A container of a pod. The autoscaler's is what `autoscalerOptions` says; KubeRay gives the rest."""

    pod: Pod
    node: Node

    role: str
    """`container`, `init` or `autoscaler`."""

    @property
    def owner(self) -> Object:
        """The object that it stands in."""
        return self.pod.owner

    @property
    def image(self) -> Node:
        """Its image. Raises NotKnownYetError."""
        return self.node.at("image")

    def env(self, name: str) -> Node | None:
        """The last variable of that name, a mapping with `value` or `valueFrom`. Raises NotKnownYetError."""
        found = [each for each in self.node.at("env").items() if each.at("name").text == name]
        return found[-1] if found else None


@dataclass(frozen=True, eq=False)
class Stack:
    """All objects that are judged together."""

    objects: tuple[Object, ...] = field(default_factory=tuple)

    part: bool = False
    """Whether they are those of a group of tenants, in an environment whose other stacks have the rest."""

    def of(self, *kinds: str) -> Iterator[Object]:
        """Those of a kind."""
        return (each for each in self.objects if each.kind in kinds)

    def ray_clusters(self) -> Iterator[RayCluster]:
        """All RayClusters."""
        return (each for owner in self.objects for each in ray_clusters(owner))

    def pods(self) -> Iterator[Pod]:
        """All pods. Raises NotKnownYetError."""
        return (each for owner in self.objects for each in pods(owner))

    def ray_namespaces(self) -> dict[str, RayCluster]:
        """The namespaces in which Ray runs, each with the first that does. Raises NotKnownYetError."""
        found: dict[str, RayCluster] = {}
        for each in self.ray_clusters():
            found.setdefault(each.owner.namespace or "default", each)
        return found


Subject: TypeAlias = Object | RayCluster | Pod | Container | Stack
"""What a rule can be about."""


def ray_clusters(owner: Object) -> Iterator[RayCluster]:
    """The specs of RayClusters in an object. Raises NotKnownYetError."""
    if owner.group == RAY and owner.kind in RAY_CLUSTERS:
        spec = owner.root.at(*RAY_CLUSTERS[owner.kind])
        if spec.said:  # a RayJob may go to a RayCluster that is there
            yield RayCluster(owner, spec)


def pods(owner: Object) -> Iterator[Pod]:
    """The pods and pod templates in an object. Raises NotKnownYetError."""
    path = POD_TEMPLATES.get((owner.group, owner.kind))
    if path is not None:
        yield Pod(owner, owner.root.at(*path))
    elif (owner.group, owner.kind) == VOLCANO_JOB:
        for task in owner.root.at("spec", "tasks").items():
            yield Pod(owner, task.at("template"))
    for cluster in ray_clusters(owner):
        yield from cluster.pods()
    if owner.group == RAY and owner.kind in SUBMITTERS:
        submitter = owner.root.at(*SUBMITTERS[owner.kind])
        if submitter.said:
            yield Pod(owner, submitter, "submitter")


def containers(owner: Object) -> Iterator[Container]:
    """The containers in an object. Raises NotKnownYetError."""
    return (container for pod in pods(owner) for container in pod.containers())


def _only(owner: Object) -> Iterator[Object]:
    yield owner


SUBJECTS: dict[type, Callable[[Object], Iterable[Any]]] = {
    Object: _only,
    RayCluster: ray_clusters,
    Pod: pods,
    Container: containers,
}
"""How the subjects of a kind are found in an object."""


__all__ = [
    "SUBJECTS",
    "Container",
    "NotKnownYetError",
    "Object",
    "Pod",
    "RayCluster",
    "Stack",
    "Subject",
    "containers",
    "pods",
    "ray_clusters",
]
