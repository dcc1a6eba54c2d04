"""The state of the running stack: what the engine reports of it, and dependencies as one entry of it."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from components.pulumi_internals import as_dependency, children

Outputs = Mapping[str, Any]

_HALF_WRITTEN = "failed to load checkpoint: EOF"

_PAUSES = (0.05, 0.1, 0.2, 0.4)
"""Seconds before each further try."""


def last_outputs() -> Outputs:
    """The stack's outputs; empty before the end of the first update."""
    return _asked("readStackOutputs", {"name": _stack()})


def last_resources() -> Mapping[str, Outputs]:
    """The outputs of each resource and of the stack itself, by URN. Reads the whole state."""
    found = _asked("readStackResourceOutputs", {"stackName": _stack()})
    # The engine also returns the type of each resource (pulumi 3.276, pkg/backend/backend.go, GetStackResourceOutputs).
    return {urn: each["outputs"] for urn, each in found.items()}


def _stack() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _asked(function: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
    """Asks again if the engine reads its state in a folder while it writes it.

    The engine replaces the state at once, but empties the file of its attributes before it writes that (gocloud.dev,
    blob/fileblob/attrs.go, setAttrs), and then cannot read the state.
    """
    pauses = iter(_PAUSES)
    while True:
        try:
            value = pulumi.runtime.invoke(f"pulumi:pulumi:{function}", dict(arguments)).value or {}
            return value.get("outputs") or {}
        # The SDK raises no other class for an error of the engine.
        except Exception as error:
            if _HALF_WRITTEN not in str(error) or (pause := next(pauses, None)) is None:
                raise
            time.sleep(pause)


def whole(component: pulumi.Resource, but: type[pulumi.Resource] | None = None) -> pulumi.Output[pulumi.Resource]:
    """A component for `depends_on`, known once everything below it exists, except resources of the class `but`.

    If a component itself is in `depends_on`, Pulumi's SDK writes the URNs of all its children into each dependent
    resource: the state of N tenants then lists the whole platform N times. The engine needs only the component's URN:
    it deletes the dependents of a component before the component's children (pulumi 3.276,
    pkg/resource/graph/dependency_graph.go, DependenciesOf).
    """
    return pulumi.Output.from_input(_made(component, but))


async def _made(component: pulumi.Resource, but: type[pulumi.Resource] | None) -> pulumi.Resource:
    for resource in list(_below(component)):
        if but is None or not isinstance(resource, but):
            await resource.urn.future()
    urn = await component.urn.future()
    assert urn is not None, "the URN of a resource is known in previews too"
    return as_dependency(urn)


def _below(resource: pulumi.Resource) -> Iterator[pulumi.Resource]:
    for child in children(resource):
        yield child
        yield from _below(child)
