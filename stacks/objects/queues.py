"""The queues of a stack: their names, the namespaces that may use them, and the queue of each RayCluster.

Pure functions.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from pydantic.alias_generators import to_camel

from components.queues.budget import Room, beyond_quotas, beyond_room, problems_of_queues, rooms
from components.queues.kueue import not_covered, problems_with_kueue
from components.queues.settings import Queue, children
from components.queues.volcano import problems_with_volcano
from components.ray_cluster.manifests import NO_SCHEDULING, SETTINGS_BY_LABEL, Scheduling
from components.ray_cluster.settings import RayClusterSettings
from components.tenant.demand import Demand
from components.tenant.settings import QuotaSettings, hard
from core.problems import Path, Problem
from core.quantities import amount
from stacks.cached import cached
from stacks.settings import StackSettings, TenantSettings

_NO_SCHEDULER = (
    "needs a scheduler that knows queues and gangs, and the stack has none: set ray-platform:scheduler to "
    "{{volcano: {{}}}}, or remove {}"
)


QUEUE_KEYS = ("queue", "gang", "priority_class", "network_topology")
"""Fields of a RayCluster's settings that only a scheduler of queues and gangs reads."""


@cached
def queues_of(stack: StackSettings) -> list[Queue]:
    """The queues that the stack creates: those that tenants share, and a tenant's own."""
    users = _users(stack)
    shared = [
        Queue(
            queue.name,
            queue,
            tuple(users[queue.name]) if queue.allowed_namespaces is None else queue.allowed_namespaces,
            ("queues", index),
        )
        for index, queue in enumerate(stack.queues)
    ]
    own = [
        Queue(
            tenant.namespace_name, tenant.queue, (tenant.namespace_name,), ("tenants", index, "queue"), of_tenant=True
        )
        for index, tenant in enumerate(stack.tenants)
        if tenant.queue and tenant.queue.name is None
    ]
    return [*shared, *own]


def queue_of(tenant: TenantSettings, cluster: RayClusterSettings | None = None) -> str | None:
    """Name of the queue that a tenant's RayCluster waits in, or that all of them use by default; None: the scheduler's
    own, or none with Kubernetes' scheduler."""
    if cluster and cluster.scheduler == "kubernetes":
        return None
    if cluster and cluster.queue:
        return cluster.queue
    return (tenant.queue.name or tenant.namespace_name) if tenant.queue else None


def scheduling_of(stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings) -> Scheduling:
    if stack.scheduler is None or cluster.scheduler == "kubernetes":
        return NO_SCHEDULING
    return Scheduling(stack.scheduler.backend, queue_of(tenant, cluster))


def scheduler_of(stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings) -> str:
    """The scheduler of a tenant's RayCluster: what it chooses, or the stack's, with Kueue only if it has a queue."""
    if cluster.scheduler:
        return cluster.scheduler
    if stack.scheduler is None or (stack.scheduler.kueue and queue_of(tenant, cluster) is None):
        return "kubernetes"
    return stack.scheduler.backend


def usable(stack: StackSettings, tenant: TenantSettings) -> list[str]:
    """Names of the queues that a tenant's RayClusters may wait in."""
    return _usable(stack)[tenant.namespace_name]


@cached
def rooms_of(stack: StackSettings) -> Mapping[str, Mapping[str, Room]]:
    """By queue and resource, the most that each queue of the stack can have."""
    return rooms(queues_of(stack), stack.nodes) if stack.scheduler else {}


def problems_of_scheduling(stack: StackSettings) -> Iterator[Problem]:
    """Settings that conflict with the stack's scheduler and its queues. RayClusters are checked by their settings
    alone."""
    yield from _schedulers(stack)
    if stack.scheduler is None:
        yield from _without_scheduler(stack)
        return
    yield from _labels(stack)
    if stack.scheduler.volcano and stack.operator.batch_scheduler not in (None, "volcano"):
        message = "scheduler is volcano, but the operator would create pod groups for another: remove batchScheduler"
        yield Problem(("operator", "batchScheduler"), stack.operator.batch_scheduler, message, "one-scheduler")
    queues = queues_of(stack)
    if stack.platform is None:
        yield from _names(queues)
        yield from _uses(stack, queues)
        found = problems_of_queues(queues, stack.nodes)
        yield from found or _quotas(stack, queues)
        if stack.scheduler.kueue:
            yield from problems_with_kueue(queues, stack.nodes, stack.scheduler.kueue.fair_sharing)
        if stack.scheduler.volcano:
            yield from problems_with_volcano(queues, stack.scheduler.volcano.scheduler.queue_shares)


def beyond_queue(
    stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings, demand: Demand
) -> Iterator[Problem]:
    """Why a RayCluster, or one of its workers, could never start in its queue; paths in its body."""
    queue = queue_of(tenant, cluster)
    if stack.scheduler is None or stack.platform is not None or queue is None:
        return
    rooms = rooms_of(stack)
    # An existing Kueue may leave resources out of account (excludeResourcePrefixes).
    if stack.scheduler.kueue and stack.scheduler.kueue.install == "manifests":
        yield from not_covered(demand, queue, stack.nodes)
    if queue in rooms:
        yield from beyond_room(demand.name, demand, queue, rooms[queue])


@cached
def _usable(stack: StackSettings) -> Mapping[str, list[str]]:
    """By namespace, the names of the queues that may be used there and have no child queues."""
    queues, usable_by_namespace = queues_of(stack), defaultdict(list)
    below = children(queues)
    for queue in queues:
        for namespace in () if below[queue.name] else queue.namespaces:
            usable_by_namespace[namespace].append(queue.name)
    return usable_by_namespace


def _users(stack: StackSettings) -> Mapping[str, dict[str, None]]:
    """By queue, the namespaces of the tenants that name it, in the order of the tenants."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for tenant in stack.tenants:
        for name in (queue_of(tenant), *(queue_of(tenant, cluster) for cluster in tenant.all_clusters)):
            if name:
                found[name][tenant.namespace_name] = None
    return found


def _clusters(stack: StackSettings) -> Iterator[tuple[Path, TenantSettings, RayClusterSettings]]:
    for index, tenant in enumerate(stack.tenants):
        for path, cluster in tenant.placed_clusters:
            yield ("tenants", index, *path), tenant, cluster


_SCHEDULER_RULE = "tenant-scheduler"


def _schedulers(stack: StackSettings) -> Iterator[Problem]:
    """Schedulers that the stack does not install, that KubeRay cannot leave to a tenant or a RayCluster, or that the
    tenant may not use; and queues of a scheduler that is not used."""
    for index, tenant in enumerate(stack.tenants):
        of_tenant = list(_scheduler_of_tenant(stack, tenant))
        yield from (each.below(("tenants", index)) for each in of_tenant)
        for path, cluster in () if of_tenant else tenant.placed_clusters:
            yield from (each.below(("tenants", index, *path)) for each in _scheduler_of_cluster(stack, tenant, cluster))


def _scheduler_of_tenant(stack: StackSettings, tenant: TenantSettings) -> Iterator[Problem]:
    if tenant.scheduler is None:
        return
    for at, name in enumerate(tenant.scheduler):
        yield from _not_installed(stack, ("scheduler", at), name)
    forced = stack.operator_in_force.batch_scheduler
    if forced and set(tenant.scheduler) == {"kubernetes"}:
        yield from _not_left(("scheduler", 0), forced)
    elif stack.scheduler and tenant.queue and stack.scheduler.backend not in tenant.scheduler:
        yield _of_another(("queue",), queue_of(tenant), stack.scheduler.backend, _may(tenant.scheduler))


def _scheduler_of_cluster(
    stack: StackSettings, tenant: TenantSettings, cluster: RayClusterSettings
) -> Iterator[Problem]:
    """Paths are in the cluster's settings."""
    chosen, queue, forced = cluster.scheduler, queue_of(tenant, cluster), stack.operator_in_force.batch_scheduler
    if chosen and (unknown := list(_not_installed(stack, ("scheduler",), chosen))):
        yield from unknown
    elif chosen == "kubernetes" and forced:
        yield from _not_left(("scheduler",), forced)
    elif chosen == "kubernetes" and stack.scheduler:
        yield from _without_queues(cluster, stack.scheduler.backend)
    elif chosen == "kueue" and queue is None:
        message = (
            "Kueue holds back only RayClusters with a queue, and neither this one nor its tenant has one: set queue, "
            "or set scheduler to kubernetes"
        )
        yield Problem(("scheduler",), chosen, message, _SCHEDULER_RULE)
    if (allowed := tenant.scheduler) is None:
        return
    used = scheduler_of(stack, tenant, cluster)
    if used in allowed:
        return
    if chosen:
        message = f"{_may(allowed)}: use one of these, or add {used} to the tenant's scheduler"
        yield Problem(("scheduler",), chosen, message, _SCHEDULER_RULE)
    elif used == "kubernetes":
        message = (
            f"without a queue Kubernetes' scheduler starts it at once, and {_may(allowed)}: set queue, or add "
            "kubernetes to the tenant's scheduler"
        )
        yield Problem((), cluster.name, message, _SCHEDULER_RULE)
    else:
        yield _of_another(("queue",) if cluster.queue else (), queue, used, _may(allowed))


def _may(allowed: Sequence[str]) -> str:
    return f"the tenant may use {' and '.join(allowed)}"


def _not_installed(stack: StackSettings, path: Path, name: str) -> Iterator[Problem]:
    known = ["kubernetes", *([stack.scheduler.backend] if stack.scheduler else [])]
    if name not in known:
        message = (
            f"this stack does not install {name}: use {' or '.join(known)}, or set ray-platform:scheduler to "
            f"{{{name}: {{}}}}"
        )
        yield Problem(path, name, message, _SCHEDULER_RULE)


def _not_left(path: Path, forced: str) -> Iterator[Problem]:
    """controllers/ray/raycluster_controller.go: createHeadPod; AddMetadataToChildResource of each batch scheduler."""
    message = (
        f"KubeRay's operator has one batch scheduler, and gives every pod of Ray to {forced}, with or without a queue: "
        "remove this key, or use Kueue, which leaves RayClusters without a queue to Kubernetes"
    )
    yield Problem(path, "kubernetes", message, _SCHEDULER_RULE)


def _without_queues(cluster: RayClusterSettings, backend: str) -> Iterator[Problem]:
    for field in QUEUE_KEYS:
        value = getattr(cluster, field)
        if field == "queue" and value:
            yield _of_another(("queue",), value, backend, "scheduler of this RayCluster is kubernetes")
        elif field in cluster.model_fields_set and value:
            message = f"is for {backend}, and scheduler of this RayCluster is kubernetes: remove one of them"
            yield Problem((to_camel(field),), value if isinstance(value, str) else None, message, _SCHEDULER_RULE)


def _of_another(path: Path, queue: str | None, backend: str, but: str) -> Problem:
    message = f"queue {queue or 'default'!r} belongs to {backend}, and {but}: remove the queue, or allow {backend}"
    return Problem(path, queue, message, _SCHEDULER_RULE)


def _without_scheduler(stack: StackSettings) -> Iterator[Problem]:
    configured: list[tuple[Path, object]] = [(("queues",), stack.queues)]
    configured += [(("tenants", index, "queue"), tenant.queue) for index, tenant in enumerate(stack.tenants)]
    for path, _, cluster in _clusters(stack):
        for field in QUEUE_KEYS:
            value = getattr(cluster, field) if field in cluster.model_fields_set else None
            configured.append(((*path, to_camel(field)), value))
    for path, value in configured:
        if value:
            message = _NO_SCHEDULER.format(path[-1])
            yield Problem(path, value if isinstance(value, str) else None, message, "queue-without-scheduler")


def _labels(stack: StackSettings) -> Iterator[Problem]:
    for path, _, cluster in _clusters(stack):
        for label in cluster.labels.keys() & SETTINGS_BY_LABEL.keys():
            message = f"label {label!r} follows from {SETTINGS_BY_LABEL[label]}: set that instead"
            yield Problem((*path, "labels", label), cluster.labels[label], message, "reserved-label")


def _names(queues: list[Queue]) -> Iterator[Problem]:
    first: dict[str, Queue] = {}
    for queue in queues:
        if queue.name in first:
            own = queue.path[-1] == "queue"
            whose = "with the name of the tenant's own queue, which is its namespace's" if own else "already"
            message = f"there is a queue {queue.name!r} {whose}: set a unique name"
            yield Problem(queue.path if own else (*queue.path, "name"), queue.name, message, "repeated-name")
        first.setdefault(queue.name, queue)


def _uses(stack: StackSettings, queues: list[Queue]) -> Iterator[Problem]:
    """Queues that are named but cannot be used."""
    named: list[tuple[Path, TenantSettings, str]] = []
    for index, tenant in enumerate(stack.tenants):
        if tenant.queue and tenant.queue.name:
            named.append((("tenants", index, "queue", "name"), tenant, tenant.queue.name))
        elif tenant.queue:
            named.append((("tenants", index, "queue"), tenant, tenant.namespace_name))
    named += [((*path, "queue"), tenant, cluster.queue) for path, tenant, cluster in _clusters(stack) if cluster.queue]
    by_name, families = {queue.name: queue for queue in queues}, children(queues)
    for path, tenant, name in named:
        if name not in by_name:
            known = f"use one of {', '.join(usable(stack, tenant))}, or " if usable(stack, tenant) else ""
            message = f"queue {name!r} does not exist: {known}add it to ray-platform:queues"
            yield Problem(path, name, message, "unknown-queue")
        elif below := families[name]:
            message = (
                f"queue {name!r} is the parent of {', '.join(child.name for child in below)}, and RayClusters wait "
                "only in queues without children: use one of these"
            )
            yield Problem(path, name, message, "queue-is-a-parent")
        elif tenant.namespace_name not in (allowed := by_name[name].namespaces):
            message = (
                f"queue {name!r} is for {', '.join(allowed) or 'no namespace'}, and the tenant's namespace is "
                f"{tenant.namespace_name!r}: add it to the queue's allowedNamespaces, or use another queue"
            )
            yield Problem(path, name, message, "queue-not-allowed")


def _quotas(stack: StackSettings, queues: list[Queue]) -> Iterator[Problem]:
    of_namespace = {tenant.namespace_name: tenant.quota for tenant in stack.tenants}
    for queue in queues:
        quotas = [of_namespace.get(namespace) for namespace in queue.namespaces]
        requests = [_requests(quota) for quota in quotas if quota is not None]
        if len(requests) == len(quotas):
            yield from beyond_quotas(queue, requests)


def _requests(quota: QuotaSettings) -> dict[str, Decimal]:
    """By resource, the most that pods may request."""
    prefix = "requests."
    return {entry.removeprefix(prefix): amount(most) for entry, most in hard(quota).items() if entry.startswith(prefix)}
