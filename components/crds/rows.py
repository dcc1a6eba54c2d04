"""States of earlier releases, which hold each definition as a resource: how the definitions leave them.

See docs/decisions/0024-definitions-outside-the-state.md.
"""

from collections.abc import Mapping
from typing import Any, Literal

import pulumi

from ..kubernetes import KubernetesObject
from ..last_state import last_outputs, last_resources
from . import live
from .definitions import Body, Definition, content

Rows = Literal["keep", "drop", "none"]
"""What an `up` does with definitions that the state holds one by one: it keeps them, marked to be retained; it drops
them; or there are none."""

OUTPUT = "crds"
"""The stack's output that says what the last `up` did: `retained`, or `separate`."""

OUTPUTS: Mapping[Rows, str] = {"keep": "retained", "drop": "separate", "none": "separate"}

_RETAINED = "ray-platform/retained"
"""Annotation of a definition whose row in the state bears `retainOnDelete`: the same step writes both."""

_TYPE = "$kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition::"


def rows_of_this_stack() -> Rows:
    """What this `up` does with rows of the state.

    Engines of Pulumi decide by the state of the last `up` whether a row that the program no longer registers deletes
    its object. So rows are dropped only where both the last outputs and every row say that they are retained.
    """
    last = last_outputs().get(OUTPUT)
    if last == OUTPUTS["none"]:
        return "none"
    rows = [outputs for urn, outputs in last_resources().items() if _TYPE in urn]
    if not rows:
        return "none"
    return "drop" if last == OUTPUTS["keep"] and all(map(_is_retained, rows)) else "keep"


def explain(rows: Rows) -> None:
    """Tells the reader of a preview what rows that come and go mean."""
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
    """The definitions as earlier releases registered them, and marked."""
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
