"""What a name on the command line means among the objects of a stack's tenants. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_service.applications import clusters_of
from components.rollout.pods import Pod, kind, leaves
from core.suggestions import names_hint
from stacks.commands.status.live import RAY_KINDS
from stacks.commands.status.snapshot import Body, Found


class NoSuchTargetError(Exception):
    """The name means nothing, or several things; the message lists what there is."""


@dataclass(frozen=True)
class Target:
    """A RayCluster, RayJob or RayService."""

    kind: str
    namespace: str
    body: Body
    found: Found
    """Everything in its namespace."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["metadata"]["name"])

    @property
    def title(self) -> str:
        """Its name for messages: `RayCluster team-a/training`."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def cluster(self) -> Body | None:
        """The RayCluster itself, or the one that runs the job, or serves, or is to serve; None if it does not exist."""
        if self.kind == "RayCluster":
            return self.body
        status = self.body.get("status") or {}
        name = next(iter(clusters_of(status).values()), status.get("rayClusterName"))
        return next((each for each in self.found.all("rayclusters") if each["metadata"]["name"] == name), None)

    @property
    def head(self) -> Pod | None:
        """The pod of that RayCluster's head."""
        name = self.cluster["metadata"]["name"] if self.cluster else None
        heads = (
            pod
            for pod in self.found.all("pods")
            if kind(pod) == "head" and pod["metadata"]["labels"].get(CLUSTER_LABEL) == name and not leaves(pod)
        )
        return next(heads, None)


def target(word: str, namespaces: Mapping[str, Found]) -> Target:
    """The object of that name, or `<namespace>/<name>`. A RayCluster goes before a RayJob of the same name.

    Raises NoSuchTargetError.
    """
    namespace, _, name = word.rpartition("/")
    if namespace and namespace not in namespaces:
        raise NoSuchTargetError(f"the stack has no namespace {namespace!r}: {names_hint(namespace, namespaces)}")
    all_of_them = list(_targets(namespaces))
    meant = [each for each in all_of_them if each.name == name and namespace in ("", each.namespace)]
    within = list(dict.fromkeys(each.namespace for each in meant))
    if len(within) > 1:
        raise needs_namespace(name, within)
    if not meant:
        raise NoSuchTargetError(_unknown(word, all_of_them, namespaces))
    return meant[0]


def needs_namespace(name: str, within: Iterable[str]) -> NoSuchTargetError:
    """The error for a name that objects in these namespaces have, to be raised."""
    several = " or ".join(f"{each}/{name}" for each in within)
    return NoSuchTargetError(f"{name!r} exists in several namespaces: write {several}")


def _targets(namespaces: Mapping[str, Found]) -> Iterator[Target]:
    for namespace, found in namespaces.items():
        for plural, title in zip(RAY_KINDS, ("RayCluster", "RayJob", "RayService"), strict=True):
            yield from (Target(title, namespace, body, found) for body in found.all(plural))


def _unknown(word: str, known: list[Target], namespaces: Mapping[str, Found]) -> str:
    namespace, _, name = word.rpartition("/")
    names = {
        f"{each.namespace}/{each.name}" if namespace else each.name
        for each in known
        if namespace in ("", each.namespace)
    }
    where = f"namespace {namespace!r} has" if namespace else "the stack's namespaces have"
    hidden = [each for each, found in namespaces.items() if "rayclusters" in found.unreadable]
    beside = f" (this account must not read {', '.join(hidden)})" if hidden else ""
    return f"{where} no RayCluster, RayJob or RayService {name!r}: {names_hint(word, names)}{beside}"
