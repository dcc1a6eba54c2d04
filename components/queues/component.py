"""How queues are provisioned."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from core.nodes import NodePool

from ..kubernetes import Body, KubernetesObject, in_namespace
from . import kueue
from .admission import KUEUE_QUEUE_LABEL, QUEUE_LABEL, allowed_namespaces
from .guard import QueueGuard, QueueGuardArgs
from .queue import Queue, children, parents_first
from .settings import Backend
from .volcano import volcano_queue


@dataclass(frozen=True)
class QueuesArgs:
    """What Queues are made from."""

    backend: Backend
    """Whose objects they become. Its CRDs are there."""

    queues: Sequence[Queue]

    pools: Sequence[NodePool] = ()
    """All nodes; only Kueue is told of them."""

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that this program makes, by name: what is made in them waits for them."""

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""

    cluster_wide: bool = True
    """Whether shared queues are made here, and what all queues need."""

    has: Callable[[str], bool] = lambda _: True
    """Whether what is in a namespace is made here: LocalQueues, and a tenant's own queue."""


class Queues(pulumi.ComponentResource):
    """The queues of a cluster, and who may use them.

    A queue is made after its parent and deleted before it, and not while a RayCluster names it. RayClusters depend on
    this component: a gang whose queue is not there waits, and with Volcano's webhook is refused.
    """

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Queues", name, None, opts)
        self._name = name
        # A component's children do not inherit what it depends on.
        self._after = opts.depends_on if opts else None
        if args.backend == "volcano":
            self._volcano(args)
        else:
            self._kueue(args)
        self.register_outputs({})

    def _volcano(self, args: QueuesArgs) -> None:
        made: dict[str, pulumi.Resource] = {}
        for queue in parents_first(args.queues):
            if not _is_here(queue, args):
                continue
            above = made.get(queue.settings.parent or "")
            made[queue.name] = self._made(queue.name, volcano_queue(queue), [above] if above else [])
            self._guarded(queue, QUEUE_LABEL, args.context, made[queue.name])
        for body in allowed_namespaces() if args.queues and args.cluster_wide else ():
            kind = "binding" if body["kind"].endswith("Binding") else "policy"
            self._made(f"{body['metadata']['name']}-{kind}", body)

    def _kueue(self, args: QueuesArgs) -> None:
        first: list[pulumi.Resource] = []
        if args.cluster_wide:
            first = [
                self._made(f"flavor-{body['metadata']['name']}", body) for body in kueue.resource_flavors(args.pools)
            ]
            for body in kueue.cohorts(args.queues, args.pools):
                first.append(self._made(f"cohort-{body['metadata']['name']}", body, list(first)))
        below = children(args.queues)
        for queue in args.queues:
            if below[queue.name]:
                continue
            after = first
            if _is_here(queue, args):
                after = [self._made(queue.name, kueue.cluster_queue(queue, args.pools), first)]
                self._guarded(queue, KUEUE_QUEUE_LABEL, args.context, *after)
            for namespace in filter(args.has, queue.namespaces):
                inside = in_namespace(kueue.local_queue(queue), args.namespaces.get(namespace, namespace))
                self._made(f"{queue.name}/{namespace}", inside, after)

    def _guarded(self, queue: Queue, label: str, context: str | None, made: pulumi.Resource) -> None:
        QueueGuard(
            f"{self._name}-{queue.name}-guard",
            QueueGuardArgs(queue.name, label, context),
            pulumi.ResourceOptions(parent=self, depends_on=[made]),
        )

    def _made(self, part: str, body: Body, after: Sequence[pulumi.Resource] = ()) -> pulumi.Resource:
        waits = pulumi.ResourceOptions(parent=self, depends_on=list(after))
        return KubernetesObject(
            f"{self._name}-{part}",
            body,
            pulumi.ResourceOptions.merge(waits, pulumi.ResourceOptions(depends_on=self._after)),
        )


def _is_here(queue: Queue, args: QueuesArgs) -> bool:
    """Whether a queue is made here; a tenant's own is called as its namespace."""
    return args.has(queue.name) if queue.of_tenant else args.cluster_wide
