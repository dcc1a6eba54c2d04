"""How the termination of a tenant's idle RayClusters is provisioned."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components.bodies import Body
from components.kubernetes import in_turn


@dataclass(frozen=True)
class IdleTerminationArgs:
    """Arguments of IdleTermination."""

    bodies: Mapping[str, Body]
    """The objects, by part (manifests.objects)."""

    namespace: pulumi.Input[str]


class IdleTermination(pulumi.ComponentResource):
    """A pod that suspends the tenant's RayClusters with `idleTerminationOptions` when nobody uses them.

    It depends on the RayClusters (`depends_on`), whose tokens it reads.
    """

    def __init__(self, name: str, args: IdleTerminationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:IdleTermination", name, None, opts)
        own = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        # When the pod starts, its account has its rights.
        in_turn(name, args.bodies, args.namespace, own)
        self.register_outputs({})
