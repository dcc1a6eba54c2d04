"""The queues of a cluster, each with a guard that refuses its deletion while it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components.cluster import AMBIENT, Connection
from components.dynamic.guards import QueueGuard, QueueGuardArgs
from components.kubernetes import below, create
from components.objects import Object


@dataclass(frozen=True)
class QueuesArgs:
    objects: Sequence[Object]
    """The queues and what they need (manifests.queue_objects). The scheduler's CRDs exist."""

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that the program creates, by name: objects in them wait for them."""

    connection: Connection = AMBIENT


class Queues(pulumi.ComponentResource):
    """The queues of a cluster, and the policies for their use.

    A queue is created after its parent and deleted before it. It is not deleted while a RayCluster names it.
    RayClusters depend on this component: a gang without its queue waits, or Volcano's webhook refuses it.
    """

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Queues", name, None, opts)
        made = create(name, args.objects, below(self, opts), args.namespaces)
        for each in args.objects:
            if each.named_by:
                QueueGuard(
                    f"{name}-{each.name}-guard",
                    QueueGuardArgs(each.name, each.named_by, args.connection),
                    pulumi.ResourceOptions(parent=self, depends_on=[made[each.name]]),
                )
