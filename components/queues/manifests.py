"""All objects of queues, in the order of creation. Pure functions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from components.bodies import in_namespace
from components.queues import kueue
from components.queues.settings import Backend, Queue, children, parents_first
from components.queues.volcano import allowed_namespaces, volcano_queue
from core.nodes import NodePool

Body = dict[str, Any]

_OF_WHOLE_QUEUES = frozenset({"Queue", "ClusterQueue"})


@dataclass(frozen=True)
class QueueObject:
    """One of the objects."""

    part: str
    """Its unique name among them, and the suffix of its resource's name."""

    body: Body

    after: tuple[str, ...] = ()
    """Parts that are created before it."""

    queue: Queue | None = None
    """The queue that it is for; None: all of them."""

    @property
    def is_queue(self) -> bool:
        """Whether it is the queue itself, in which RayClusters wait."""
        return self.body["kind"] in _OF_WHOLE_QUEUES


def queue_objects(
    backend: Backend,
    queues: Sequence[Queue],
    pools: Sequence[NodePool] = (),
    *,
    cluster_wide: bool = True,
    has: Callable[[str], bool] = lambda _: True,
) -> Iterator[QueueObject]:
    """The objects of the queues for `backend`, each after those that it needs.

    `pools`: all nodes. `cluster_wide`: whether to include shared queues and the objects that all queues need. `has`:
    whether to include the objects of a namespace: LocalQueues, and a tenant's own queue.
    """

    def is_here(queue: Queue) -> bool:
        # A tenant's own queue has the name of its namespace.
        return has(queue.name) if queue.of_tenant else cluster_wide

    if backend == "volcano":
        yield from _of_volcano(queues, is_here, cluster_wide=cluster_wide)
    else:
        yield from _of_kueue(queues, pools, is_here, has, cluster_wide=cluster_wide)


def _of_volcano(
    queues: Sequence[Queue], is_here: Callable[[Queue], bool], *, cluster_wide: bool
) -> Iterator[QueueObject]:
    made = set()
    for queue in filter(is_here, parents_first(queues)):
        parent = queue.settings.parent
        made.add(queue.name)
        yield QueueObject(queue.name, volcano_queue(queue), (parent,) if parent in made else (), queue)
    for body in allowed_namespaces() if queues and cluster_wide else ():
        kind = "binding" if body["kind"].endswith("Binding") else "policy"
        yield QueueObject(f"{body['metadata']['name']}-{kind}", body)


def _of_kueue(
    queues: Sequence[Queue],
    pools: Sequence[NodePool],
    is_here: Callable[[Queue], bool],
    has: Callable[[str], bool],
    *,
    cluster_wide: bool,
) -> Iterator[QueueObject]:
    first: tuple[str, ...] = ()
    below = children(queues)
    if cluster_wide:
        flavors = [QueueObject(f"flavor-{_name(body)}", body) for body in kueue.resource_flavors(pools)]
        yield from flavors
        first = tuple(each.part for each in flavors)
        by_name = {queue.name: queue for queue in queues}
        for body in kueue.cohorts(queues, pools):
            yield QueueObject(f"cohort-{_name(body)}", body, first, by_name.get(_name(body)))
            first = (*first, f"cohort-{_name(body)}")
    for queue in queues:
        if below[queue.name]:
            continue
        after = first
        if is_here(queue):
            yield QueueObject(queue.name, kueue.cluster_queue(queue, pools), first, queue)
            after = (queue.name,)
        for namespace in filter(has, queue.namespaces):
            body = in_namespace(kueue.local_queue(queue), namespace)
            yield QueueObject(f"{queue.name}/{namespace}", body, after, queue)


def _name(body: Body) -> str:
    return str(body["metadata"]["name"])
