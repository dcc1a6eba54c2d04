"""Renders queues into objects of Kueue. Pure functions.

A queue is a ClusterQueue, or a Cohort if it has children. Queues without a parent are in one Cohort for the whole
stack. Its quota is the nodes' resources that no queue deserves; the first to ask borrows them. Each namespace that may
use a queue has a LocalQueue of the queue's name. Other namespaces have none, so they cannot use the queue.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from components.queues.budget import on_nodes
from components.queues.settings import Queue, QueueAmounts, children, parents_first
from components.tenant.demand import Demand
from core.body import Body
from core.nodes import GPU_PRODUCT_LABEL, GPU_RESOURCE, NodePool, gpu_resources
from core.problems import Problem
from core.quantities import canonical

API_VERSION = "kueue.x-k8s.io/v1beta2"

WHOLE = "ray-platform"
"""Cohort above all queues, and flavor of resources other than GPUs, which are the same on all nodes."""

_GPU = "gpu"
"""Flavor of GPUs without a product name."""

Quotas = dict[tuple[str, str], Decimal]
"""Amounts by flavor and resource."""


def resource_flavors(pools: Sequence[NodePool]) -> list[Body]:
    """The ResourceFlavors: one for each GPU product of the nodes, and one for all other resources."""
    flavors: list[Body] = [_flavor(WHOLE, {})]
    flavors += [
        _flavor(name, {GPU_PRODUCT_LABEL: product} if product else {}) for name, product in _products(pools).items()
    ]
    flavors += [_flavor(name, {}) for names in list(_flavors(pools).values())[1:] for name in names]
    return flavors


def cohorts(queues: Sequence[Queue], pools: Sequence[NodePool]) -> list[Body]:
    """The Cohorts, parents first."""
    below = children(queues)
    free = _beyond(_of_nodes(pools), below[None], pools)
    whole = _object("Cohort", WHOLE, {"resourceGroups": _resource_groups(free, {}, {})})
    return [whole, *(_cohort(queue, below[queue.name], pools) for queue in parents_first(queues) if below[queue.name])]


def cluster_queue(queue: Queue, pools: Sequence[NodePool]) -> Body:
    """The ClusterQueue. `deserved` is its nominalQuota; `guarantee` is the nominalQuota less the lendingLimit."""
    settings = queue.settings
    spec = {
        "cohortName": settings.parent or WHOLE,
        "queueingStrategy": "StrictFIFO" if settings.dequeue_strategy == "fifo" else "BestEffortFIFO",
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(queue.namespaces)}
            ]
        },
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": _groups_of(queue, _deserved(queue, pools), pools),
        **({"fairSharing": {"weight": str(settings.weight)}} if settings.weight is not None else {}),
    }
    return _object("ClusterQueue", queue.name, spec)


def local_queue(queue: Queue) -> Body:
    """The LocalQueue by which a namespace uses the queue."""
    return _object("LocalQueue", queue.name, {"clusterQueue": queue.name})


def problems_with_kueue(queues: Sequence[Queue], pools: Sequence[NodePool], fair_sharing: bool) -> Iterator[Problem]:
    """Queue settings that Kueue does not support, or not with its own settings; paths are those of the queues."""
    if queues and not pools:
        message = "are not set, and the quotas of Kueue's queues are parts of the nodes' resources: add them"
        yield Problem(("nodes",), None, message, "not-with-kueue")
        return
    products = _products(pools)
    for queue in queues:
        settings = queue.settings
        if not settings.reclaimable:
            message = "in Kueue each queue always gets back what it deserves: remove reclaimable, or lower deserved"
            yield Problem((*queue.path, "reclaimable"), False, message, "not-with-kueue")
        if settings.priority:
            message = "Kueue serves queues by their share, and has priorities of RayClusters only: remove priority"
            yield Problem((*queue.path, "priority"), settings.priority, message, "not-with-kueue")
        # A weight of 1 is the same as no weight.
        if (settings.weight or 1) > 1 and not fair_sharing:
            message = (
                "has no effect in Kueue without fair sharing: remove it, or set scheduler.kueue.fairSharing to true"
            )
            yield Problem((*queue.path, "weight"), settings.weight, message, "queue-shares")
        for part in ("guarantee", "deserved", "capability"):
            yield from _gpu_flavors(queue, part, getattr(settings, part), products)


def not_covered(demand: Demand, queue: str, pools: Sequence[NodePool]) -> Iterator[Problem]:
    """Pods that request what no queue has: Kueue never admits them (kueue, pkg/scheduler/flavorassigner/
    flavorassigner.go: findFlavorForPodSets). Paths are in the body of the RayCluster."""
    covered = on_nodes(pools).keys()
    for group in demand.groups:
        requested = {
            resource for resource, value in group.usage.items() if value > 0 and f"requests.{resource}" in group.usage
        }
        others = ", ".join(sorted(requested - covered))
        if others and (group.at_first or (demand.scales and group.most != 0)):
            message = (
                f"{group.title} requests {others}, and queues of Kueue only have CPU, memory and "
                f"{', '.join(gpu_resources(pools))}, so the RayCluster would wait in queue {queue!r} forever: remove "
                "it, use Volcano, or name it as the gpuResource of a pool"
            )
            yield Problem(group.path, None, message, "not-with-kueue")


def _gpu_flavors(
    queue: Queue, part: str, amounts: QueueAmounts, products: Mapping[str, str | None]
) -> Iterator[Problem]:
    path = (*queue.path, part)
    if amounts.gpus and len(products) > 1:
        known = ", ".join(product or "others" for product in products.values())
        message = f"Kueue counts GPUs by product, and the nodes have several ({known}): set gpusByProduct"
        yield Problem((*path, "gpus"), amounts.gpus, message, "gpus-by-product")
    known = ", ".join(sorted(product for product in products.values() if product)) or "none"
    for product in amounts.gpus_by_product:
        if product not in products.values():
            message = f"no nodes have a gpuProduct {product!r}: use one of {known}"
            yield Problem((*path, "gpusByProduct", product), None, message, "gpus-by-product")


def _products(pools: Sequence[NodePool]) -> dict[str, str | None]:
    """The flavors of GPUs, each with its product name; None for GPUs without one."""
    found = [pool.gpu_product for pool in pools if pool.gpus and pool.gpu_resource == GPU_RESOURCE]
    return {_name(product): product for product in dict.fromkeys(found)}


def _flavors(pools: Sequence[NodePool]) -> dict[str, list[str]]:
    """The flavors of each resource of GPUs. Those of other vendors, and slices, have one."""
    others = [resource for resource in gpu_resources(pools) if resource != GPU_RESOURCE]
    return {GPU_RESOURCE: list(_products(pools)), **{resource: [_name(resource)] for resource in others}}


def _name(product: str | None) -> str:
    return re.sub(r"[^a-z0-9.-]", "-", product.lower()).strip("-.") if product else _GPU


def _quotas(amounts: QueueAmounts, pools: Sequence[NodePool]) -> Quotas:
    """Amounts by flavor and resource."""
    found = _without_products(amounts.numbers, pools)
    if GPU_RESOURCE in amounts.numbers:
        for flavor, product in _products(pools).items():
            by_product = amounts.gpus_by_product.get(product or "", 0)
            found[flavor, GPU_RESOURCE] = Decimal(by_product if amounts.gpus_by_product else amounts.gpus or 0)
    return found


def _without_products(amounts: Mapping[str, Decimal], pools: Sequence[NodePool]) -> Quotas:
    """Amounts of what has a single flavor: all but GPUs with products."""
    flavors = _flavors(pools)
    return {
        (flavors[resource][0] if resource in flavors else WHOLE, resource): value
        for resource, value in amounts.items()
        if resource != GPU_RESOURCE
    }


def _deserved(queue: Queue, pools: Sequence[NodePool]) -> Quotas:
    return _quotas(queue.settings.guarantee, pools) | _quotas(queue.settings.deserved, pools)


def _of_nodes(pools: Sequence[NodePool]) -> Quotas:
    quotas = _without_products(on_nodes(pools), pools)
    for flavor, product in _products(pools).items():
        of_product = (each for each in pools if each.gpu_product == product and each.gpu_resource == GPU_RESOURCE)
        number = sum(pool.gpus * pool.count for pool in of_product)
        quotas[flavor, GPU_RESOURCE] = Decimal(number)
    return quotas


def _beyond(quotas: Quotas, queues: Sequence[Queue], pools: Sequence[NodePool]) -> Quotas:
    """Quotas less those that the queues deserve."""
    left = dict(quotas)
    for queue in queues:
        for key, value in _deserved(queue, pools).items():
            left[key] = max(left.get(key, Decimal(0)) - value, Decimal(0))
    return left


def _cohort(queue: Queue, below: Sequence[Queue], pools: Sequence[NodePool]) -> Body:
    """The Cohort of a parent. Its quota adds to its children's, so it is the parent's less what they deserve."""
    left = _beyond(_deserved(queue, pools), below, pools)
    settings = queue.settings
    spec = {
        "parentName": settings.parent or WHOLE,
        "resourceGroups": _groups_of(queue, left, pools),
        **({"fairSharing": {"weight": str(settings.weight)}} if settings.weight is not None else {}),
    }
    return _object("Cohort", queue.name, spec)


def _groups_of(queue: Queue, nominal: Quotas, pools: Sequence[NodePool]) -> list[Body]:
    """The resource groups of a queue. They cover all resources of the nodes: pods cannot request other ones."""
    deserved = _deserved(queue, pools)
    guarantee, capability = (
        _quotas(amounts, pools) for amounts in (queue.settings.guarantee, queue.settings.capability)
    )
    covered = dict.fromkeys([*_of_nodes(pools), *deserved, *capability], Decimal(0)) | nominal
    nothing = Decimal(0)
    borrowing = {key: max(most - deserved.get(key, nothing), nothing) for key, most in capability.items()}
    lending = {key: deserved[key] - kept for key, kept in guarantee.items() if kept}
    return _resource_groups(covered, borrowing, lending)


def _resource_groups(nominal: Quotas, borrowing: Quotas, lending: Quotas) -> list[Body]:
    groups: dict[tuple[str, ...], list[Body]] = {}
    for flavor in dict.fromkeys(flavor for flavor, _ in nominal):
        resources = tuple(resource for its_flavor, resource in nominal if its_flavor == flavor)
        quotas = [_quota(each, (flavor, each), nominal, borrowing, lending) for each in resources]
        groups.setdefault(resources, []).append({"name": flavor, "resources": quotas})
    return [{"coveredResources": list(resources), "flavors": flavors} for resources, flavors in groups.items()]


def _quota(resource: str, key: tuple[str, str], nominal: Quotas, borrowing: Quotas, lending: Quotas) -> Body:
    values = {"nominalQuota": nominal.get(key), "borrowingLimit": borrowing.get(key), "lendingLimit": lending.get(key)}
    # Kueue writes the object back in its own words, and another text for an amount is a difference to Pulumi.
    return {"name": resource, **{field: canonical(value) for field, value in values.items() if value is not None}}


def _flavor(name: str, labels: Mapping[str, str]) -> Body:
    return _object("ResourceFlavor", name, {"nodeLabels": dict(labels)} if labels else {})


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
