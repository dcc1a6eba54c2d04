"""What a state lacks, and the completed state. Pure functions on the JSON of `pulumi stack export`.

Fields are those of Pulumi's sdk/go/common/apitype/core.go, DeploymentV3 and ResourceV3.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.bodies import FIELD_MANAGER_ANNOTATION

Json = dict[str, Any]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The placeholder in a preview for a value that is not known yet (pulumi.runtime.rpc.UNKNOWN)."""

_KUBERNETES = "kubernetes:"

_CREATING = "creating"
"""Type of a pending operation (sdk/go/common/apitype/core.go: OperationTypeCreating)."""


@dataclass(frozen=True)
class Candidate:
    """A Kubernetes object that the stack was creating, or is about to create."""

    row: Json
    """The resource, without the id that it gets once it exists."""

    api_version: str
    kind: str
    namespace: str
    """Empty for a kind without namespaces."""
    name: str
    manager: str
    """The field manager that the program sets; empty if it sets none."""

    @property
    def urn(self) -> str:
        return str(self.row["urn"])

    @property
    def identifier(self) -> str:
        """Its id in the state."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.identifier}"


def pending(deployment: Mapping[str, Any]) -> list[Json]:
    """The operations that were begun and not completed, each with its `type` and `resource`."""
    return list(deployment.get("pending_operations") or ())


def missing(deployment: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> list[Candidate]:
    """The objects that may exist though they are not in the state: those that were being created, and those that a
    preview would create. Objects that the state has under another name are not included."""
    begun = [operation["resource"] for operation in pending(deployment) if operation["type"] == _CREATING]
    planned = [step["newState"] for step in steps if step["op"] == "create" and step.get("newState")]
    known = {(row["type"], row["id"]) for row in _rows(deployment) if row.get("id") and not _is_gone(row)}
    found: dict[str, Candidate] = {}
    for row in (*begun, *planned):
        if (creating := _object_of(row)) and (row["type"], creating.identifier) not in known:
            found.setdefault(creating.urn, creating)
    return list(found.values())


def has_unknown(steps: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a preview would create an object whose name or namespace is not known yet. It cannot be looked up,
    because its name is an output of another object that the preview would create."""
    rows = [step["newState"] for step in steps if step["op"] == "create" and step.get("newState")]
    return any(_is_object(row) and _object_of(row) is None for row in rows)


def completed(deployment: Mapping[str, Any], steps: Iterable[Mapping[str, Any]], existing: Sequence[Candidate]) -> Json:
    """The state with these objects, their parents and providers, and without pending operations."""
    planned = {step["urn"]: step["newState"] for step in steps if step.get("newState")}
    taken = {candidate.urn for candidate in existing}
    rows = [row for row in _rows(deployment) if not (row["urn"] in taken and _is_gone(row))]
    result = _Rows(rows, planned)
    for candidate in existing:
        result.add(candidate.row | {"id": candidate.identifier})
    kept = {key: value for key, value in deployment.items() if key != "pending_operations"}
    return {**kept, "resources": _ordered(rows)}


def unsettled(deployment: Mapping[str, Any]) -> list[str]:
    """URNs of resources that were being changed, so that the state may be outdated, and of objects that were added to
    it and not read yet."""
    begun = {operation["resource"]["urn"] for operation in pending(deployment) if operation["type"] != _CREATING}
    return sorted(row["urn"] for row in _rows(deployment) if row["urn"] in begun or _is_unread(row))


def _ordered(rows: Sequence[Json]) -> list[Json]:
    """The rows, each after all rows that it refers to, else in their order.

    A state in another order is refused (pkg/resource/deploy/snapshot.go: VerifyIntegrity). A recreated object is the
    last row at first, and rows that depend on the deleted one are before it.
    """
    live = {row["urn"]: row for row in rows if not row.get("delete")}
    visited: set[int] = set()
    result: list[Json] = []

    def place(row: Json) -> None:
        if id(row) not in visited:
            visited.add(id(row))
            for urn in _references(row):
                if urn in live:
                    place(live[urn])
            result.append(row)

    for row in rows:
        place(row)
    return result


def _references(row: Json) -> Iterator[str]:
    """The URNs of the rows that Pulumi requires before this one."""
    yield str(row.get("parent") or "")
    yield str(row.get("provider") or "").rpartition("::")[0]
    yield str(row.get("deletedWith") or "")
    yield from row.get("dependencies") or ()
    for urns in (row.get("propertyDependencies") or {}).values():
        yield from urns or ()


class _Rows:
    """The rows of a state while more are added, with references to no other rows."""

    def __init__(self, rows: list[Json], planned: Mapping[str, Json]) -> None:
        self._rows = rows
        self._planned = planned
        self._there = {row["urn"]: row for row in rows if not row.get("delete")}

    def add(self, row: Json) -> None:
        urn = row["urn"]
        if urn in self._there:
            return
        made = {key: value for key, value in row.items() if key not in ("outputs", "initErrors")}
        if _is_object(row):
            # The provider's Diff of an object without a name in its outputs ends the provider. A preview before the
            # object is read compares what was sent (pulumi-kubernetes 4.32, provider/pkg/provider: Diff,
            # parseCheckpointObject).
            made["outputs"] = {**row["inputs"], "__inputs": row["inputs"]}
        if not self._has(row.get("parent", "")):
            made.pop("parent", None)
        if reference := str(row.get("provider") or ""):
            provider, _, _ = reference.rpartition("::")
            if self._has(provider):
                made["provider"] = f"{provider}::{self._there[provider]['id']}"
        made["dependencies"] = self._known(row.get("dependencies"))
        of_properties = row.get("propertyDependencies") or {}
        made["propertyDependencies"] = {key: self._known(urns) for key, urns in of_properties.items()}
        for key in ("deletedWith", "replaceWith", "resourceHooks"):
            made.pop(key, None)
        self._there[urn] = made
        self._rows.append(made)

    def _has(self, urn: str) -> bool:
        """Whether the state has that component or provider; it is added if the program has it."""
        if urn not in self._there and (row := self._planned.get(urn)):
            if row["type"].startswith("pulumi:providers:"):
                self.add({**row, "id": str(uuid.uuid4())})
            elif not row.get("custom"):
                self.add({key: row[key] for key in ("urn", "type", "custom", "parent") if key in row})
        return urn in self._there

    def _known(self, urns: Iterable[str] | None) -> list[str]:
        return [urn for urn in urns or () if urn in self._there]


def _rows(deployment: Mapping[str, Any]) -> list[Json]:
    return list(deployment.get("resources") or ())


def _is_gone(row: Mapping[str, Any]) -> bool:
    """Whether only the state still has it: it was deleted to make room for its replacement."""
    return bool(row.get("pendingReplacement"))


def _is_unread(row: Mapping[str, Any]) -> bool:
    """Whether its outputs are what `_Rows.add` writes: the server gives an object its uid."""
    outputs = row.get("outputs") or {}
    return "__inputs" in outputs and "uid" not in outputs.get("metadata", {})


def _is_object(row: Mapping[str, Any]) -> bool:
    return bool(row["type"].startswith(_KUBERNETES) and row.get("custom"))


def _object_of(row: Json) -> Candidate | None:
    if not _is_object(row):
        return None
    inputs = row.get("inputs") or {}
    metadata = inputs.get("metadata") or {}
    names = (inputs.get("apiVersion"), inputs.get("kind"), metadata.get("namespace", ""), metadata.get("name"))
    if not all(isinstance(name, str) and name != UNKNOWN for name in names):
        return None
    api_version, kind, namespace, name = map(str, names)
    manager = (metadata.get("annotations") or {}).get(FIELD_MANAGER_ANNOTATION)
    return Candidate(row, api_version, kind, namespace, name, manager if isinstance(manager, str) else "")
