"""Installs a program with CustomResourceDefinitions: KubeRay's operator, Volcano, Kueue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from core.versions import UnsupportedVersionError

from .bodies import Body, in_namespace
from .cluster import ClusterUnreachableError
from .crds.component import CustomResourceDefinitions, DefinitionsArgs
from .crds.definitions import MissingDefinitionError
from .crds.guard import CrdGuard, CrdGuardArgs
from .crds.rows import Rows, retained_rows
from .kubernetes import KubernetesObject
from .manifest_files import ManifestError

NOT_INSTALLED = (ManifestError, MissingDefinitionError, UnsupportedVersionError, ClusterUnreachableError)
"""Errors of installing or finding a program."""


@dataclass(frozen=True)
class InstallArgs:
    """Arguments of `install`."""

    definitions: DefinitionsArgs

    stages: Sequence[Sequence[Body]]
    """Its objects; each stage needs the one before it."""

    rows: Rows = "none"
    """What to do with definitions that are single resources in the state."""

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that the stack creates, by name: objects in them wait for them."""


def install(name: str, args: InstallArgs, opts: pulumi.ResourceOptions) -> CrdGuard:
    """Creates the definitions, then stage after stage, then the guard, which is deleted before all of them.

    `opts`: of each resource. Raises ClusterUnreachableError.
    """
    given = args.definitions
    made: list[pulumi.Resource] = []
    if args.rows == "keep":
        made += retained_rows(name, list(given.definitions), given.webhook, opts)
    else:
        made.append(CustomResourceDefinitions(f"{name}-crds", given, opts))
    for stage in args.stages:
        # The previous stage depends on all stages before it.
        after = _after(made, opts)
        made = [
            KubernetesObject(f"{name}-{object_name(body)}", _in_made_namespace(body, args.namespaces), after)
            for body in stage
        ]
    guarded = CrdGuardArgs(given.guard, [each.resource for each in given.definitions], given.context)
    return CrdGuard(f"{name}-crd-guard", guarded, _after(made, opts))


def object_name(body: Body) -> str:
    """The name of an object's Pulumi resource, unique among the objects of a program."""
    metadata = body["metadata"]
    parts = [body["kind"].lower(), metadata["name"]]
    if body["kind"] in ("Role", "RoleBinding"):
        parts.insert(1, metadata["namespace"])
    return "-".join(parts)


def _in_made_namespace(body: Body, namespaces: Mapping[str, pulumi.Input[str]]) -> Body:
    made = namespaces.get(body["metadata"].get("namespace", ""))
    return body if made is None else in_namespace(body, made)


def _after(made: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(made)))
