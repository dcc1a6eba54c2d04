"""How the CustomResourceDefinitions of a program are provisioned.

In states of earlier releases each definition is a resource; see docs/decisions/0024-definitions-outside-the-state.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi

from ..dynamic import Resource
from ..kubernetes import KubernetesObject, field_manager
from ..state import last_outputs, last_resources
from . import live
from .definitions import Body, Definition, content
from .guard import CrdGuardProvider
from .live import differences
from .provider import DefinitionsProvider


@dataclass(frozen=True)
class DefinitionsArgs:
    """Arguments of CustomResourceDefinitions."""

    owner: str
    """The program that they belong to, in messages: `KubeRay`."""

    release: str
    """Its version."""

    definitions: Sequence[Definition]

    guard: CrdGuardProvider
    """Blocks their deletion while objects of their kinds exist."""

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""

    webhook: Mapping[str, pulumi.Input[str]] | None = None
    """`namespace` and `caBundle` of the conversion webhook, if there is one."""


class CustomResourceDefinitions(Resource, module="ray-platform", name="CustomResourceDefinitions"):
    """The definitions of one program as one resource. The state has their digests; the cluster has the content.

    Creation and update use server-side apply and return once the API server has established the definitions. A refresh
    reports who changed one, and the next update corrects it. Deletion fails while objects of their kinds exist. A
    preview reports which fields an update adds, removes and changes.

    Raises ClusterUnreachableError if definitions in the cluster cannot be read.
    """

    def __init__(self, name: str, args: DefinitionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        manager = field_manager()
        inputs = {
            "owner": args.owner,
            "release": args.release,
            "definitions": {each.name: each.digest for each in args.definitions},
            "context": args.context,
            "fieldManager": manager,
            "webhook": args.webhook,
        }
        super().__init__(DefinitionsProvider(args.guard), name, inputs, opts)
        for line in differences(args.context, args.definitions, manager):
            pulumi.log.info(line, self)


Rows = Literal["keep", "drop", "none"]
"""What an `up` does with definitions that are single resources in the state: it keeps them and marks them as retained;
it removes them from the state; or there are none."""

OUTPUT = "crds"
"""The stack's output with the action of the last `up`: `retained`, or `separate`."""

OUTPUTS: Mapping[Rows, str] = {"keep": "retained", "drop": "separate", "none": "separate"}

_RETAINED = "ray-platform/retained"
"""Annotation of a definition whose row in the state has `retainOnDelete`. The same step writes both."""

_TYPE = "$kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition::"


def rows_of_this_stack() -> Rows:
    """The action of this `up` on rows of the state.

    If the program no longer registers a row, Pulumi's engine decides by the state of the last `up` whether to delete
    the object. So rows are dropped only if both the last outputs and every row have the mark.
    """
    last = last_outputs().get(OUTPUT)
    if last == OUTPUTS["none"]:
        return "none"
    rows = [outputs for urn, outputs in last_resources().items() if _TYPE in urn]
    if not rows:
        return "none"
    return "drop" if last == OUTPUTS["keep"] and all(map(_is_retained, rows)) else "keep"


def explain(rows: Rows) -> None:
    """Explains added and removed rows to the reader of a preview."""
    if rows == "keep":
        pulumi.log.info(
            "The state of this stack holds CustomResourceDefinitions of up to a megabyte each. This `pulumi up` marks "
            "them as retained, and the next `pulumi up` removes them from the state. They stay in the cluster"
        )
    elif rows == "drop":
        pulumi.log.info(
            "This `pulumi up` removes CustomResourceDefinitions from the state, where each was a resource. The preview "
            "shows them as deleted; they are retained in the cluster"
        )


def retained_rows(
    name: str,
    definitions: list[Definition],
    webhook: Mapping[str, pulumi.Input[str]] | None,
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """The definitions as earlier releases registered them, with the mark."""
    opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True))
    return [
        KubernetesObject(
            f"{name}-customresourcedefinition-{each.name}",
            _marked(live.body_of_row(content(each.digest), webhook)),
            opts,
        )
        for each in definitions
    ]


def _marked(body: Body) -> Body:
    own = body["metadata"]
    return {**body, "metadata": {**own, "annotations": {**(own.get("annotations") or {}), _RETAINED: "true"}}}


def _is_retained(outputs: Mapping[str, Any]) -> bool:
    return bool((outputs.get("metadata") or {}).get("annotations", {}).get(_RETAINED) == "true")
