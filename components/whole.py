"""Dependencies on all that a component makes, as one entry of the state."""

from collections.abc import Iterator

import pulumi
from pulumi.resource import DependencyResource


def whole(component: pulumi.ComponentResource) -> pulumi.Output[pulumi.Resource]:
    """A component for `depends_on`, known once everything below it exists.

    Where a component itself is in `depends_on`, Pulumi's SDK writes the URN of every resource below it into each
    resource that depends on it: a state of N tenants then has N times all of the platform. The engine needs only the
    component's URN: it deletes what depends on a component before everything that was made below it (pulumi 3.259,
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
