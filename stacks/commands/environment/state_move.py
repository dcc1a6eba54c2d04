"""The resources in each stack's state before and after a move between stacks. Pure functions.

A moved resource keeps its name, its id and its properties. The stack in its URN changes, and it no longer depends on
resources that stay behind. The resources that every stack has for itself (the stack itself, providers, and components
that are only parents) are copied to where they are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

PLATFORM = "platform"
"""Name of the Platform component, and prefix of the names of all its children."""

ROOT_TYPE = "pulumi:pulumi:Stack"

PLATFORM_TYPE, QUEUES_TYPE = "ray-platform:index:Platform", "ray-platform:index:Queues"
EXTERNAL_REDIS = "ray-platform:index:ExternalRedis"

_PROVIDER = "pulumi:providers:"
_TENANT, _REDIS = "ray-platform:index:Tenant", "ray-platform:index:RedisHa"
_NAMESPACE = f"{PLATFORM}-namespace-"
_OF_A_QUEUE = f"{PLATFORM}-queues-"
_OF_REDIS = f"{PLATFORM}-redis-"


def name_in(urn: str) -> str:
    return urn.split("::", 3)[3]


def types_in(urn: str) -> list[str]:
    """Types of the resource's parents, the top one first, and its own type last."""
    return urn.split("::", 3)[2].split("$")


def is_default_provider(urn: str) -> bool:
    """Whether Pulumi itself made the provider."""
    return types_in(urn)[-1].startswith(_PROVIDER) and name_in(urn).startswith("default")


def tenants_among(urns: Iterable[str]) -> set[str]:
    """Namespaces of the tenants that have a Tenant component or a namespace among the resources."""
    found = set()
    for urn in urns:
        name, types = name_in(urn), types_in(urn)
        if types == [_TENANT]:
            found.add(name)
        elif types[-1].endswith(":Namespace") and len(types) == 2 and name.startswith(_NAMESPACE):
            found.add(name.removeprefix(_NAMESPACE))
    return found


def namespace_of(row: Row, by_urn: Mapping[str, Row], shared_queues: Iterable[str]) -> str | None:
    """The tenant's namespace that decides which stack has a resource; None: the platform's stack.

    `by_urn`: all resources of its state. `shared_queues`: names of the queues that tenants share.
    """
    above: Row | None = row
    while above:
        name, kind = name_in(above["urn"]), types_in(above["urn"])[-1]
        if kind == _TENANT:
            return name
        if kind == _REDIS:
            return name.removeprefix(_OF_REDIS)
        above = by_urn.get(above.get("parent", ""))
    name, types = name_in(row["urn"]), types_in(row["urn"])
    kind = types[-1].rpartition(":")[2]
    if kind == "Namespace" and name.startswith(_NAMESPACE) and len(types) == 2:
        return name.removeprefix(_NAMESPACE)
    if kind == "Secret" and EXTERNAL_REDIS in types:
        return name.removeprefix(f"{_OF_REDIS}secret-")
    if QUEUES_TYPE in types and kind == "LocalQueue":
        return name.rpartition("/")[2]
    if QUEUES_TYPE in types and kind in ("Queue", "ClusterQueue", "QueueGuard"):
        queue = name.removeprefix(_OF_A_QUEUE)
        queue = queue.removesuffix("-guard") if kind == "QueueGuard" else queue
        return None if queue in shared_queues else queue
    return None


Rows = Sequence[Row]

OwnerOf = Callable[[Row, Mapping[str, Row]], str | None]
"""The stack that a resource belongs to, from the resource and all resources of its state by URN; None: it stays."""


@dataclass(frozen=True)
class Arrangement:
    with_gains: Mapping[str, Rows]
    """All resources of each stack at the end, with nothing removed yet."""

    final: Mapping[str, Rows]

    moved: Counter[str]
    """The number of resources that each stack gains."""


def arranged(before: Mapping[str, Rows], owner: OwnerOf) -> Arrangement:
    """Puts each resource into the state of the stack that it belongs to. A resource that is there already is not added
    again.

    `before`: resources by stack; new stacks are empty.
    """
    states = {stack: _State(stack, rows) for stack, rows in before.items()}
    stay: dict[str, list[Row]] = {stack: [] for stack in before}
    moved: Counter[str] = Counter()
    for source, rows in before.items():
        by_urn = {row["urn"]: row for row in rows}
        platforms = [row for row in rows if row["type"] == PLATFORM_TYPE]
        for row in rows:
            target = None if _is_of_each(row) else owner(row, by_urn)
            if target is None or target == source:
                stay[source].append(row)
            elif states[target].add(row, by_urn):
                moved[target] += 1
                # Every stack has one, whether it has children or not.
                for platform in platforms:
                    states[target].add(platform, by_urn)
    gained = {stack: state.rows[len(before[stack]) :] for stack, state in states.items()}
    final = {stack: _tidied([*stay[stack], *gained[stack]]) for stack in before}
    return Arrangement({stack: state.rows for stack, state in states.items()}, final, moved)


def urn_in(urn: str, stack: str) -> str:
    """The URN of the same resource in another stack."""
    _, project, types, name = urn.split("::", 3)
    return f"urn:pulumi:{stack}::{project}::{types}::{f'{project}-{stack}' if types == ROOT_TYPE else name}"


class _State:
    """The resources of one stack, while more are added."""

    def __init__(self, stack: str, rows: Rows) -> None:
        # Pulumi Cloud's `organization/stack` is `stack` in URNs.
        self._name = stack.rpartition("/")[2]
        self.rows = list(rows)
        self._ids = {row["urn"]: row.get("id", "") for row in rows}
        self._there = {self._key(row) for row in rows}

    def add(self, row: Row, by_urn: Mapping[str, Row]) -> bool:
        """Adds a resource of another stack, after the resources that it needs. Returns False if the stack has it
        already."""
        if self._key(row) in self._there:
            return False
        for needed in (row.get("parent"), _provider_of(row)):
            if needed and needed in by_urn and self._own(needed) not in self._ids:
                self.add(by_urn[needed], by_urn)
        self._there.add(self._key(row))
        self.rows.append(_bound_to(self._translated(row), self._ids))
        self._ids[self.rows[-1]["urn"]] = row.get("id", "")
        return True

    def _key(self, row: Row) -> tuple[str, Any, bool]:
        return self._own(row["urn"]), row.get("id"), bool(row.get("delete"))

    def _own(self, urn: str) -> str:
        return urn_in(urn, self._name)

    def _translated(self, row: Row) -> Row:
        """The resource of another stack with the URNs and the provider of this stack."""
        new = {key: self._with_own_urns(value) if key in _WITH_URNS else value for key, value in row.items()}
        if urn := _provider_of(row):
            new["provider"] = f"{self._own(urn)}::{self._ids.get(self._own(urn), '')}"
        return new

    def _with_own_urns(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._own(value) if value else value
        if isinstance(value, list):
            return [self._with_own_urns(each) for each in value]
        return {key: self._with_own_urns(each) for key, each in (value or {}).items()}


_WITH_URNS = ("urn", "parent", "dependencies", "propertyDependencies", "deletedWith", "aliases")
"""Keys of a resource that refer to resources; `provider` has the provider's id after its URN."""


def _provider_of(row: Row) -> str:
    """URN of a resource's provider; empty where it has none."""
    return str(row.get("provider") or "").rpartition("::")[0]


def _is_of_each(row: Row) -> bool:
    """Whether every stack has its own."""
    kind = str(row["type"])
    return kind in (ROOT_TYPE, PLATFORM_TYPE, QUEUES_TYPE, EXTERNAL_REDIS) or kind.startswith(_PROVIDER)


def _bound_to(row: Row, urns_in_state: Iterable[str]) -> Row:
    """The resource without dependencies on resources that the state does not have."""
    kept = dict(row)
    if "dependencies" in row:
        kept["dependencies"] = [urn for urn in row["dependencies"] if urn in urns_in_state]
    if "propertyDependencies" in row:
        kept["propertyDependencies"] = {
            key: [urn for urn in urns or () if urn in urns_in_state]
            for key, urns in row["propertyDependencies"].items()
        }
    if row.get("deletedWith") and row["deletedWith"] not in urns_in_state:
        del kept["deletedWith"]
    return kept


def _tidied(rows: Rows) -> Rows:
    """Removes the resources that nothing needs any more, and dependencies on removed resources."""
    needed = {row.get("parent") for row in rows} | {_provider_of(row) for row in rows}
    kept = [row for row in rows if row["urn"] in needed or not _only_serves(row)]
    urns_in_state = {row["urn"] for row in kept}
    return [_bound_to(row, urns_in_state) for row in kept]


def _only_serves(row: Row) -> bool:
    """Whether it only serves other resources: a default provider of Pulumi, or a parent of Secrets."""
    return is_default_provider(row["urn"]) or row["type"] == EXTERNAL_REDIS
