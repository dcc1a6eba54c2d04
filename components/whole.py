"""Dependencies on a whole component, as one entry of the state."""

from collections.abc import Iterator

import pulumi
from pulumi.resource import DependencyResource


def whole(component: pulumi.ComponentResource) -> pulumi.Output[pulumi.Resource]:
    """A component for `depends_on`, known once everything below it exists.

    If a component itself is in `depends_on`, Pulumi's SDK writes the URNs of all its children into each dependent
    resource: the state of N tenants then lists the whole platform N times. The engine needs only the component's URN:
    it deletes the dependents of a component before the component's children (pulumi 3.259,
    pkg/resource/graph/dependency_graph.go, DependenciesOf).
    """
    return pulumi.Output.from_input(_made(component))


async def _made(component: pulumi.ComponentResource) -> pulumi.Resource:
    for resource in list(_below(component)):
        await resource.urn.future()
    urn = await component.urn.future()
    assert urn is not None, "the URN of a resource is known in previews too"
    return DependencyResource(urn)


def _below(resource: pulumi.Resource) -> Iterator[pulumi.Resource]:
    for child in resource._childResources:
        yield child
        yield from _below(child)
