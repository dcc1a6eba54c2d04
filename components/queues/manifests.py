"""All objects of queues, in the order of creation. Pure functions."""

from collections.abc import Iterator, Mapping, Sequence

from components.bodies import in_namespace
from components.objects import Object
from components.queues import kueue
from components.queues.settings import Backend, Queue, children, parents_first
from components.queues.volcano import allowed_namespaces, volcano_queue
from core.body import Body
from core.nodes import NodePool
from core.problems import Path
from kuberay.schedulers import KUEUE_QUEUE_LABEL, QUEUE_LABEL

_LABELS: Mapping[Backend, str] = {"volcano": QUEUE_LABEL, "kueue": KUEUE_QUEUE_LABEL}
"""The label of a RayCluster with its queue."""

_OF_ALL: Path = ("queues",)
_OF_NODES: Path = ("nodes",)


def queue_objects(backend: Backend, queues: Sequence[Queue], pools: Sequence[NodePool] = ()) -> Iterator[Object]:
    """The objects of the queues for `backend`, each after those that it needs; places are below `ray-platform:`.

    `pools`: all nodes.
    """
    return _of_volcano(queues) if backend == "volcano" else _of_kueue(queues, pools)


def _of_volcano(queues: Sequence[Queue]) -> Iterator[Object]:
    for queue in parents_first(queues):
        parent = queue.settings.parent
        yield _queue(queue, "volcano", volcano_queue(queue), (parent,) if parent else ())
    for body in allowed_namespaces() if queues else ():
        kind = "binding" if body["kind"].endswith("Binding") else "policy"
        yield Object(f"{_name(body)}-{kind}", body, _OF_ALL)


def _of_kueue(queues: Sequence[Queue], pools: Sequence[NodePool]) -> Iterator[Object]:
    flavors = [Object(f"flavor-{_name(body)}", body, _OF_NODES) for body in kueue.resource_flavors(pools)]
    yield from flavors
    first = tuple(each.name for each in flavors)
    by_name, below = {queue.name: queue for queue in queues}, children(queues)
    for body in kueue.cohorts(queues, pools):
        name = _name(body)
        yield Object(f"cohort-{name}", body, by_name[name].path if name in by_name else _OF_ALL, first)
        first = (*first, f"cohort-{name}")
    for queue in queues:
        if below[queue.name]:
            continue
        yield _queue(queue, "kueue", kueue.cluster_queue(queue, pools), first)
        for namespace in queue.namespaces:
            body = in_namespace(kueue.local_queue(queue), namespace)
            yield Object(f"{queue.name}/{namespace}", body, queue.path, (queue.name,))


def _queue(queue: Queue, backend: Backend, body: Body, after: tuple[str, ...]) -> Object:
    # A tenant's own queue has the name of its namespace.
    tenant = queue.name if queue.of_tenant else None
    return Object(queue.name, body, queue.path, after, tenant=tenant, named_by=_LABELS[backend])


def _name(body: Body) -> str:
    return str(body["metadata"]["name"])
