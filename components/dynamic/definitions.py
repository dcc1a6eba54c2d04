"""The CustomResourceDefinitions of a program as one resource, and its provider.

See docs/decisions/0024-definitions-outside-the-state.md.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, UpdateResult

from components.cluster import AMBIENT, Connection
from components.crds import live
from components.crds.definitions import Definition, resource_of
from components.dynamic import Provider, Resource
from components.dynamic.guards import CrdGuardProvider
from components.kubernetes import field_manager
from components.kubernetes_cluster import cluster_of
from components.pulumi_internals import without_traceback

_TAKE_OVER = "PULUMI_K8S_UPSERT_EXISTING_OBJECTS"
"""The variable with which Pulumi's Kubernetes provider imports existing objects into the state."""


class DefinitionsProvider(Provider):
    """Applies the definitions of one program.

    Inputs: `owner` ("KubeRay"), `release`, `definitions` (a digest by name), `connection`, `fieldManager`, `webhook`.
    Outputs: the same, as they were applied; and `applied`, a digest of the manager's owned fields after that, by name.
    """

    def __init__(self, guard: CrdGuardProvider) -> None:
        """`guard`: blocks the deletion of definitions in use."""
        super().__init__()
        self._guard = guard

    def create(self, props: dict[str, Any]) -> CreateResult:
        without_traceback()
        _refuse_existing(props)
        return CreateResult("definitions", _applied(props, props["definitions"]))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        without_traceback()
        existing = {name: live.metadata(cluster_of(props), name) for name in props["definitions"]}
        digests = {name: _live(body, name, props) for name, body in existing.items() if body is not None}
        return ReadResult(id_ if digests else "", {**props, "definitions": digests})

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=any(olds.get(key) != value for key, value in news.items()))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        without_traceback()
        changed = {name: digest for name, digest in news["definitions"].items() if _differs(name, olds, news)}
        kept = {name: digest for name, digest in olds.get("applied", {}).items() if name not in changed}
        outputs = _applied(news, changed, kept)
        self._remove(news, olds["definitions"].keys() - news["definitions"].keys())
        return UpdateResult(outputs)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        without_traceback()
        self._remove(props, props["definitions"])

    def _remove(self, props: Mapping[str, Any], names: Any) -> None:
        cluster = cluster_of(props)
        existing = [body for body in (live.read(cluster, name) for name in sorted(names)) if body is not None]
        self._guard.refuse({**props, "resources": [resource_of(body) for body in existing]})
        live.remove(cluster, [body["metadata"]["name"] for body in existing])


def _applied(
    props: Mapping[str, Any], changed: Mapping[str, str], kept: Mapping[str, str] | None = None
) -> dict[str, Any]:
    manager = props["fieldManager"]
    found = live.apply(cluster_of(props), changed, manager, props.get("webhook"))
    owned = {name: live.owned_fields(metadata, manager) for name, metadata in found.items()}
    applied = {name: fields for name, fields in {**(kept or {}), **owned}.items() if name in props["definitions"]}
    return {**props, "applied": applied}


def _differs(name: str, olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    common = ("fieldManager", "webhook")
    return olds["definitions"].get(name) != news["definitions"][name] or any(
        olds.get(key) != news.get(key) for key in common
    )


def _live(metadata: Mapping[str, Any], name: str, props: Mapping[str, Any]) -> str:
    """The digest of an unchanged definition; for a changed one, the managers that changed it."""
    manager = props["fieldManager"]
    if live.owned_fields(metadata, manager) == props.get("applied", {}).get(name):
        return str(props["definitions"][name])
    return f"changed by {', '.join(live.other_managers(metadata, manager)) or 'others'}"


def _refuse_existing(props: Mapping[str, Any]) -> None:
    """Existing objects are not adopted implicitly: their creator would lose the fields that it applied."""
    if os.environ.get(_TAKE_OVER) == "true":
        return
    manager = props["fieldManager"]
    existing = {name: live.metadata(cluster_of(props), name) for name in props["definitions"]}
    others = {
        name: live.other_managers(body, manager)
        for name, body in existing.items()
        if body is not None and live.owned_fields(body, manager) is None
    }
    if others:
        named = ", ".join(f"{name} (of {', '.join(managers) or 'others'})" for name, managers in others.items())
        raise live.DefinitionError(
            f"{props['owner']}'s CRDs already exist, and this stack did not create them: {named}. To use the existing "
            "ones, set install to existing; to take them into this stack, set "
            f"{_TAKE_OVER}=true in the environment once"
        )


@dataclass(frozen=True)
class DefinitionsArgs:
    owner: str
    """The program that they belong to, in messages: `KubeRay`."""

    release: str
    """Its version."""

    definitions: Sequence[Definition]

    guard: CrdGuardProvider
    """Blocks their deletion while objects of their kinds exist."""

    connection: Connection = AMBIENT

    webhook: Mapping[str, pulumi.Input[str]] | None = None
    """`namespace` and `caBundle` of the conversion webhook, if there is one."""

    changes: Sequence[str] = ()
    """What they change in the cluster (`crds.live.differences`)."""


class CustomResourceDefinitions(Resource, module="ray-platform", name="CustomResourceDefinitions"):
    """The definitions of one program as one resource. The state has their digests; the cluster has the content.

    Creation and update use server-side apply and return once the API server has established the definitions. A refresh
    reports who changed one, and the next update corrects it. Deletion fails while objects of their kinds exist. A
    preview reports the changes that the arguments name.
    """

    def __init__(self, name: str, args: DefinitionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "owner": args.owner,
            "release": args.release,
            "definitions": {each.name: each.digest for each in args.definitions},
            **args.connection.inputs(),
            "fieldManager": field_manager(),
            "webhook": args.webhook,
        }
        super().__init__(DefinitionsProvider(args.guard), name, inputs, opts)
        for line in args.changes:
            pulumi.log.info(line, self)
