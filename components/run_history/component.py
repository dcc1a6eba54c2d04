"""How a tenant's run history is provisioned."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components.bodies import Body
from components.kubernetes import in_turn


@dataclass(frozen=True)
class RunHistoryArgs:
    """Arguments of RunHistory."""

    bodies: Mapping[str, Body]
    """The objects, by part (manifests.objects)."""

    namespace: pulumi.Input[str]


class RunHistory(pulumi.ComponentResource):
    """A pod that keeps records of the tenant's RayJobs on a claim of the tenant's storage.

    It depends on that storage (`depends_on`), so on a removal its pod is deleted before the claim.
    """

    def __init__(self, name: str, args: RunHistoryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RunHistory", name, None, opts)
        own = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        # When the pod starts, its account has its rights and its program exists.
        in_turn(name, args.bodies, args.namespace, own)
        self.register_outputs({})
