"""What a concept consists of: its objects in order, each with what is known about it. Plain values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from components.bodies import in_namespace
from core.body import Body
from core.images import with_mirrors
from core.problems import Path


@dataclass(frozen=True)
class Object:
    name: str
    """Last part of the name of its Pulumi resource, unique in its list: `head-disruption-budget`."""

    body: Body

    place: Path = ()
    """Its place in the settings that it follows from: `("head",)` below a RayCluster, and in the list of a stack
    `("tenants", 0, "clusters", 1, "head")` below `ray-platform:`."""

    after: tuple[str, ...] = ()
    """Names of objects in its list that exist before it."""

    protected: bool = False
    """Whether Pulumi refuses to delete it, and leaves it in the cluster if its resource is removed."""

    tenant: str | None = None
    """Namespace of the only tenant that it is for, if it is in none itself. It is in that tenant's stack if the
    environment has several."""

    named_by: str | None = None
    """Label by which RayClusters name it, such as that of their queue. It is not deleted while one does."""

    @property
    def namespace(self) -> str | None:
        """The namespace that it is in; None: it is in none."""
        namespace: str | None = self.body["metadata"].get("namespace")
        return namespace


@dataclass(frozen=True)
class Part:
    """A component of a stack, and its objects."""

    kind: str | None
    """Name of its class: `NetworkPolicies`. None: its objects are directly below its tenant, because a component of one
    object would be a row of the state for each tenant."""

    name: str
    """Last part of the name of its Pulumi resource, unique among the parts of its tenant or platform."""

    objects: tuple[Object, ...]

    place: Path = ()
    """Of its settings: the places of its objects are below it."""

    after_platform: bool = False
    """Whether its objects need KubeRay's kinds or the admission policies."""

    def finished(self, namespace: str | None, mirrors: Mapping[str, str]) -> "Part":
        """The part with objects as they are in the list of a stack: in a namespace unless they are in one already or
        are cluster-wide, with the mirrors of their images, and with their whole places."""
        made = tuple(
            replace(each, body=with_mirrors(_inside(each.body, namespace), mirrors), place=(*self.place, *each.place))
            for each in self.objects
        )
        return replace(self, objects=made)


def the_object(objects: Iterable[Object], name: str) -> Object:
    """The object of that name in a list. Raises ValueError if there is none."""
    for each in objects:
        if each.name == name:
            return each
    raise ValueError(f"the list of objects has no {name!r}: pass the whole list of the function that makes it")


def named(bodies: Iterable[Body], place: Path = ()) -> Iterator[Object]:
    """Objects of one place that do not need each other, named by their kinds and names."""
    return (Object(object_name(body), body, place) for body in bodies)


def object_name(body: Body) -> str:
    """The last part of the name of an object's Pulumi resource, unique among the objects of a program."""
    metadata = body["metadata"]
    parts = [body["kind"].lower(), metadata["name"]]
    if body["kind"] in ("Role", "RoleBinding"):
        parts.insert(1, metadata["namespace"])
    return "-".join(parts)


def sequentially(bodies: Mapping[str, Body], place: Path = ()) -> Iterator[Object]:
    """Objects of one place, each after the one before it, so that a pod starts when what it needs exists."""
    before: tuple[str, ...] = ()
    for name, body in bodies.items():
        yield Object(name, body, place, before)
        before = (name,)


def below(listed: Iterable[Object], place: Path) -> Iterator[Object]:
    """The objects with their places below another one."""
    return (replace(each, place=(*place, *each.place)) for each in listed)


_OF_THE_CLUSTER = frozenset({"ClusterRole", "ClusterRoleBinding", "PersistentVolume"})
"""Kinds of tenants' objects that are in no namespace."""


def _inside(body: Body, namespace: str | None) -> Body:
    if namespace is None or "namespace" in body["metadata"] or body["kind"] in _OF_THE_CLUSTER:
        return body
    return in_namespace(body, namespace)
