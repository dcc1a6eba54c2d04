"""How queues are provisioned."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components.bodies import Body, in_namespace
from components.cluster import AMBIENT, Connection
from components.kubernetes import KubernetesObject
from components.queues.guard import QueueGuard, QueueGuardArgs
from components.queues.manifests import queue_objects
from components.queues.settings import Backend, Queue
from components.queues.volcano import KUEUE_QUEUE_LABEL, QUEUE_LABEL
from core.nodes import NodePool

_LABELS: Mapping[Backend, str] = {"volcano": QUEUE_LABEL, "kueue": KUEUE_QUEUE_LABEL}
"""The label of a RayCluster with its queue."""


@dataclass(frozen=True)
class QueuesArgs:
    """Arguments of Queues."""

    backend: Backend
    """The scheduler whose objects are created. Its CRDs exist."""

    queues: Sequence[Queue]

    pools: Sequence[NodePool] = ()
    """All nodes; only Kueue needs them."""

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that this program creates, by name: objects in them wait for them."""

    connection: Connection = AMBIENT

    cluster_wide: bool = True
    """Whether this component creates shared queues and the objects that all queues need."""

    has: Callable[[str], bool] = lambda _: True
    """Whether this component creates the objects of a namespace: LocalQueues, and a tenant's own queue."""


class Queues(pulumi.ComponentResource):
    """The queues of a cluster, and the policies for their use.

    A queue is created after its parent and deleted before it. It is not deleted while a RayCluster names it.
    RayClusters depend on this component: a gang without its queue waits, or Volcano's webhook refuses it.
    """

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Queues", name, None, opts)
        # Children do not inherit the dependencies of a component.
        outer = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        made: dict[str, pulumi.Resource] = {}
        objects = queue_objects(args.backend, args.queues, args.pools, cluster_wide=args.cluster_wide, has=args.has)
        for each in objects:
            after = pulumi.ResourceOptions(parent=self, depends_on=[made[part] for part in each.after])
            made[each.part] = KubernetesObject(
                f"{name}-{each.part}",
                _waiting(each.body, args.namespaces),
                pulumi.ResourceOptions.merge(after, outer),
            )
            if each.is_queue:
                QueueGuard(
                    f"{name}-{each.part}-guard",
                    QueueGuardArgs(each.part, _LABELS[args.backend], args.connection),
                    pulumi.ResourceOptions(parent=self, depends_on=[made[each.part]]),
                )
        self.register_outputs({})


def _waiting(body: Body, namespaces: Mapping[str, pulumi.Input[str]]) -> Body:
    """The object; it waits for its namespace if this program creates the namespace."""
    namespace = body["metadata"].get("namespace")
    return in_namespace(body, namespaces[namespace]) if namespace in namespaces else body
