"""Finds every pod template and every RayCluster in an object, of any kind (search.py has those of foreign kinds).

It does not see what operators create from them, such as the containers that KubeRay adds to pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from core.nodes import ACCELERATOR
from core.pods import POD_TEMPLATES, RAY, RAY_CLUSTERS, SUBMITTERS, VOLCANO_JOB
from policies.search import POD, RAY_CLUSTER, inside, is_foreign, with_inner
from policies.values import Node, Object


@dataclass(frozen=True, eq=False)
class RayCluster:
    """The spec of a RayCluster: standalone, or in a RayJob or RayService."""

    owner: Object
    spec: Node

    @property
    def standalone(self) -> bool:
        """Whether it becomes an object of kind RayCluster without a RayJob or RayService."""
        return self.owner.kind == "RayCluster" or is_foreign(self.owner)

    @property
    def scales(self) -> bool:
        """Whether Ray's autoscaler runs beside the head. Raises NotKnownYetError."""
        return self.spec.at("enableInTreeAutoscaling").value is True

    @property
    def alone(self) -> bool:
        """Whether it has no worker groups, so that the head does the work. Raises NotKnownYetError."""
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
    """`head`, `worker` or `submitter` for pods of Ray; `pod` for all others."""

    ray: RayCluster | None = None
    """The RayCluster that it belongs to."""

    group: Node | None = None
    """KubeRay's head or worker group."""

    @property
    def spec(self) -> Node:
        """Its spec. Raises NotKnownYetError."""
        return self.template.at("spec")

    @property
    def first(self) -> Container:
        """The first container, which is Ray's in pods of Ray. Raises NotKnownYetError."""
        return Container(self, self.spec.at("containers", 0), "container")

    def accelerators(self) -> Iterator[tuple[str, Node]]:
        """The GPUs and other accelerators of its first container, each with its amount. Raises NotKnownYetError."""
        for resource, amount in self.first.node.at("resources", "limits").entries():
            if ACCELERATOR.search(resource) and amount.quantity:
                yield resource, amount

    def containers(self) -> Iterator[Container]:
        """Its init containers, its containers, and that of the autoscaler. Raises NotKnownYetError."""
        for role, field_ in (("init", "initContainers"), ("container", "containers")):
            for node in self.spec.at(field_).items():
                yield Container(self, node, role)
        if self.role == "head" and self.ray and self.ray.scales:
            yield Container(self, self.ray.spec.at("autoscalerOptions"), "autoscaler")


@dataclass(frozen=True, eq=False)
class Container:
    """A container of a pod. That of the autoscaler is `autoscalerOptions`; KubeRay sets the rest."""

    pod: Pod
    node: Node

    role: str
    """`container`, `init` or `autoscaler`."""

    @property
    def owner(self) -> Object:
        """The object that contains it."""
        return self.pod.owner

    @property
    def image(self) -> Node:
        """Its image. Raises NotKnownYetError."""
        return self.node.at("image")

    def env(self, name: str) -> Node | None:
        """The last variable with that name, a mapping with `value` or `valueFrom`. Raises NotKnownYetError."""
        found = [each for each in self.node.at("env").items() if each.at("name").text == name]
        return found[-1] if found else None


@dataclass(frozen=True, eq=False)
class Stack:
    """All objects that are judged together."""

    objects: tuple[Object, ...] = field(default_factory=tuple)

    part: bool = False
    """Whether it has only the objects of a group of tenants. Other stacks of the environment have the rest."""

    @classmethod
    def of_all(cls, objects: Iterable[Object], part: bool = False) -> Stack:
        """The objects with all that are inside them."""
        return cls(tuple(each for owner in objects for each in with_inner(owner)), part)

    def of(self, *kinds: str) -> Iterator[Object]:
        """The objects of some kinds."""
        return (each for each in self.objects if each.kind in kinds)

    def ray_clusters(self) -> Iterator[RayCluster]:
        """All RayClusters."""
        return (each for owner in self.objects for each in ray_clusters(owner))

    def pods(self) -> Iterator[Pod]:
        """All pods. Raises NotKnownYetError."""
        return (each for owner in self.objects for each in pods(owner))

    def ray_namespaces(self) -> dict[str, RayCluster]:
        """The namespaces with RayClusters, each with its first one. Raises NotKnownYetError."""
        found: dict[str, RayCluster] = {}
        for each in self.ray_clusters():
            found.setdefault(each.owner.namespace or "default", each)
        return found


Subject: TypeAlias = Object | RayCluster | Pod | Container | Stack
"""Types that a rule can apply to."""


def ray_clusters(owner: Object) -> Iterator[RayCluster]:
    """The specs of RayClusters in an object. Raises NotKnownYetError."""
    if owner.group == RAY and owner.kind in RAY_CLUSTERS:
        spec = owner.root.at(*RAY_CLUSTERS[owner.kind])
        if spec.is_set:  # a RayJob may use an existing RayCluster
            yield RayCluster(owner, spec)
    for what, node in inside(owner):
        if what == RAY_CLUSTER:
            yield RayCluster(owner, node)


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
        if submitter.is_set:
            yield Pod(owner, submitter, "submitter")
    for what, node in inside(owner):
        if what == POD:
            yield Pod(owner, node)


def containers(owner: Object) -> Iterator[Container]:
    """The containers in an object. Raises NotKnownYetError."""
    return (container for pod in pods(owner) for container in pod.containers())


def _itself(owner: Object) -> Iterator[Object]:
    yield owner


SUBJECTS: dict[type, Callable[[Object], Iterable[Any]]] = {
    Object: _itself,
    RayCluster: ray_clusters,
    Pod: pods,
    Container: containers,
}
"""Functions that find the subjects of a type in an object."""
