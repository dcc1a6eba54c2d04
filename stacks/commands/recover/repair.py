"""Brings the state of a stack in line with the cluster, at whatever point a command was killed.

It looks which objects exist in the cluster, and whether this stack created them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from components.bodies import FIELD_MANAGER_ANNOTATION
from components.cluster import Cluster, Connection, path_of
from components.kubernetes_cluster import KubernetesCluster
from core.body import Body
from stacks.commands.recover import deployment as state
from stacks.commands.recover.cli import Cli, Holder, LockedError, PulumiError, release
from stacks.commands.recover.deployment import Candidate, Json

_CREATOR = "pulumi-kubernetes"
"""Field manager of an object's first write by Pulumi's provider (provider/pkg/await, since 4.29)."""


@dataclass(frozen=True)
class Existing:
    own: list[Candidate] = field(default_factory=list)
    """Created by this stack."""

    foreign: list[tuple[Candidate, str]] = field(default_factory=list)
    """Not created by this stack, each with its field managers."""

    deleting: list[Candidate] = field(default_factory=list)
    """Being deleted."""

    def __add__(self, other: "Existing") -> "Existing":
        return Existing(self.own + other.own, self.foreign + other.foreign, self.deleting + other.deleting)


def look(cluster: Cluster, objects: Iterable[Candidate]) -> Existing:
    """Looks each object up. Raises ClusterUnreachableError; without objects it needs no cluster."""
    found, kinds = Existing(), _Kinds(cluster)
    for candidate in objects:
        body = kinds.read(candidate)
        if body is None:
            continue
        if body["metadata"].get("deletionTimestamp"):
            found.deleting.append(candidate)
        elif is_own(candidate, body):
            found.own.append(candidate)
        else:
            found.foreign.append((candidate, ", ".join(sorted(_managers(body))) or "nobody"))
    return found


def is_own(candidate: Candidate, body: Mapping[str, Any]) -> bool:
    """Whether this stack created the object: it has the stack's own field manager, and Pulumi wrote it."""
    annotations = body["metadata"].get("annotations") or {}
    marked = bool(candidate.manager) and annotations.get(FIELD_MANAGER_ANNOTATION) == candidate.manager
    return marked and bool(_managers(body) & {_CREATOR, candidate.manager})


def _managers(body: Mapping[str, Any]) -> set[str]:
    return {entry["manager"] for entry in body["metadata"].get("managedFields") or ()}


class _Kinds:
    """The kinds that the API server knows, read once for each API version."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, dict[str, Body]] = {}

    def read(self, candidate: Candidate) -> Body | None:
        """The object; None if it or its kind does not exist."""
        kind = self._kinds_of(candidate.api_version).get(candidate.kind)
        if kind is None:
            return None
        namespace = candidate.namespace if kind["namespaced"] else None
        return self._cluster.get(candidate.api_version, kind["name"], namespace or None, candidate.name)

    def _kinds_of(self, api_version: str) -> dict[str, Body]:
        if api_version not in self._known:
            listed = self._cluster.request("GET", path_of(api_version, "").rstrip("/")) or {"resources": []}
            # Names with a slash are parts of objects, such as their status.
            self._known[api_version] = {each["kind"]: each for each in listed["resources"] if "/" not in each["name"]}
        return self._known[api_version]


class ForeignObjectsError(Exception):
    """Objects that the stack is about to create exist, and it did not create them; the text names them."""


@dataclass(frozen=True)
class Finding:
    """The results of examining a stack after a killed command."""

    deployment: Json
    steps: Sequence[Json]

    existing: Existing
    """Of the objects that are not in the state."""

    @property
    def pending(self) -> list[Json]:
        """Operations that were begun and not completed."""
        return state.pending(self.deployment)

    @property
    def stale(self) -> list[str]:
        """URNs of resources whose row in the state may differ from the cluster."""
        return state.unsettled(self.deployment)

    @property
    def incomplete(self) -> bool:
        """Whether a repair can reveal more: objects whose names depend on the found ones."""
        return bool(self.existing.own) and state.has_unknown(self.steps)

    @property
    def consistent(self) -> bool:
        """Whether the state needs no repair."""
        return not (self.existing.own or self.pending or self.stale)


def examine(pulumi: Cli, session: Callable[[Connection], Cluster] = KubernetesCluster) -> Finding:
    """Looks for what a killed command left behind. Changes nothing. `session`: connects to a cluster.

    Raises PulumiError, also if the state cannot be read; ClusterUnreachableError.
    """
    deployment, steps = pulumi.deployment(), pulumi.previewed()
    existing = Existing()
    for context, objects in _by_context(state.missing(deployment, steps), deployment, steps):
        existing += look(session(Connection(context)), objects)
    return Finding(deployment, steps, existing)


def repair(pulumi: Cli, finding: Finding, *, elsewhere: bool = False) -> list[Holder]:
    """Adds the stack's own objects to its state, removes pending operations, and refreshes resources that may have
    changed.

    `elsewhere`: as in `release`.

    Returns the ended processes whose lock was removed. Raises PulumiError; LockedError if somebody is or may be working
    on the stack; ForeignObjectsError, after the state was repaired, if `pulumi up` cannot succeed.
    """
    if pulumi.deployment() != finding.deployment:
        raise LockedError(f"somebody else has just changed the state of stack {pulumi.stack!r}: run this command again")
    own = finding.existing.own
    whole = state.completed(finding.deployment, finding.steps, own)
    released: list[Holder] = []
    try:
        # Also if the state needs no repair: refreshing needs the lock.
        pulumi.set_deployment(whole)
    except PulumiError as error:
        released = release(pulumi, error, elsewhere=elsewhere)
        pulumi.set_deployment(whole)
    if read := sorted({candidate.urn for candidate in own} | set(finding.stale)):
        pulumi.output("refresh", "--yes", "--skip-preview", *(f"--target={urn}" for urn in read))
    if finding.existing.foreign or finding.existing.deleting:
        raise ForeignObjectsError("\n".join(_in_the_way(pulumi.stack, finding.existing)))
    return released


def _by_context(
    missing: Sequence[Candidate], deployment: Json, steps: Sequence[Json]
) -> Iterator[tuple[str | None, list[Candidate]]]:
    """The objects by the context of the kubeconfig in their provider."""
    rows: dict[str, Any] = {step["urn"]: step["newState"] for step in steps if step.get("newState")}
    rows |= {row["urn"]: row for row in deployment.get("resources") or ()}

    def context(each: Candidate) -> str:
        provider = rows.get(str(each.row.get("provider") or "").rpartition("::")[0]) or {}
        return str((provider.get("inputs") or {}).get("context") or "")

    for name, objects in groupby(sorted(missing, key=context), context):
        yield name or None, list(objects)


def _in_the_way(stack: str, existing: Existing) -> Iterator[str]:
    for candidate, managers in existing.foreign:
        yield (
            f"{candidate} exists, and stack {stack!r} did not create it (field managers: {managers}). Delete it, give "
            "it another name in the stack file, or adopt it: `pulumi import`, for a RayCluster `ray-platform adopt`"
        )
    for candidate in existing.deleting:
        yield f"{candidate} is being deleted: run this command again after it is deleted"
