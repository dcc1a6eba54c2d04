"""Simulates the autoscalers of all tenants: each in turn requests the maximum of its worker groups.

The order is that of the plan's `GPUs in file order`: tenants as in the file, and in each tenant the largest workers
first. Workers that do not start are removed again, as Ray's autoscaler removes workers that are not needed any more, so
that they block no others.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from local.rehearse.cluster import Cluster
from local.rehearse.observed import failure
from stacks.planning.plan import GroupPlan, Plan, TenantPlan

GROUP_SECONDS = 45.0
"""Seconds until the result for a group's workers must be known: some rounds of the scheduler, one a second."""

QUIET_SECONDS = 1.5
"""A group is settled if nothing has changed for this long, and each pod runs or has a reason why not. A pod that waits
for pods that are being deleted is placed in the scheduler's next round."""

PAUSE_SECONDS = 0.3


@dataclass(frozen=True)
class Ask:
    """The request for a worker group."""

    cluster: str
    group: str
    gpus: int
    """Of a pod."""

    hosts: int
    """Pods of a worker."""

    most: int
    """The largest number of its workers."""

    pools: tuple[str, ...]


def asks(plan: Plan) -> Iterator[Ask]:
    """All requests of the tenants, in turn. A group without a cap requests as many workers as the nodes could hold."""
    for tenant in plan.tenants:
        for cluster, group in sorted(_groups(tenant), key=lambda each: each[1].workers.amounts, reverse=True):
            workers = group.workers
            most = group.held if workers.most is None else workers.most
            if most > workers.least:
                yield Ask(cluster, workers.group, int(workers.gpus), workers.hosts, most, group.pools)


def _groups(tenant: TenantPlan) -> Iterator[tuple[str, GroupPlan]]:
    for cluster in tenant.clusters:
        for group in cluster.groups:
            yield cluster.name, group


def play(cluster: Cluster, plan: Plan, show: Callable[[float, str], None]) -> list[str]:
    """Makes all requests. Returns the groups that did not settle in time. `show`: called with the progress."""
    everything, late = list(asks(plan)), []
    for index, ask in enumerate(everything):
        show(index / len(everything), f"{ask.cluster} {ask.group}")
        if not _play(cluster, plan, ask):
            late.append(f"{ask.cluster} {ask.group}")
    return late


def enough(plan: Plan, ask: Ask, taken: Mapping[str, int], running: int) -> int:
    """The number of workers to request: all, or one more than fit on the free GPUs, which gives the same result.

    `taken`: used GPUs by pool. `running`: its current workers.
    """
    if not ask.gpus:
        return ask.most
    free = sum(pool.count * pool.gpus - taken.get(pool.pool, 0) for pool in plan.pools if pool.pool in ask.pools)
    return min(ask.most, running + free // (ask.gpus * ask.hosts) + 1)


def _play(cluster: Cluster, plan: Plan, ask: Ask) -> bool:
    """Requests the workers of a group, and removes those that do not start. Returns whether it settled in time."""
    has = len(cluster.workers(ask.cluster, ask.group)) // ask.hosts
    desired = enough(plan, ask, cluster.taken(), has)
    cluster.scale(ask.cluster, ask.group, desired, [])
    settled = settles(cluster, ask, desired * ask.hosts)
    pods = cluster.workers(ask.cluster, ask.group)
    running = [pod for pod in pods if pod.running]
    if len(running) < desired * ask.hosts:
        idle = [pod.name for pod in pods if not pod.running]
        cluster.scale(ask.cluster, ask.group, len(running) // ask.hosts, idle)
        settled &= settles(cluster, ask, len(running))
    return settled


def settles(cluster: Cluster, ask: Ask, pods: int) -> bool:
    """Waits until this many pods of the group run, or the reason why they do not is known. Returns False after the time
    limit."""
    begun = time.monotonic()
    last: object = None
    since = begun
    while (now := time.monotonic()) < begun + GROUP_SECONDS:
        found, refused = cluster.workers(ask.cluster, ask.group), failure(cluster.ray(ask.cluster))
        waiting = [pod for pod in found if not pod.running]
        # KubeRay reports a refusal until its next round without one, so it may concern workers that are removed
        # already.
        known = bool(refused) if len(found) < pods else len(found) == pods and not refused
        if known and not waiting:
            return True
        state = sorted((pod.name, pod.running) for pod in found)
        if state != last:
            last, since = state, now
        if known and all(pod.waits for pod in waiting) and now >= since + QUIET_SECONDS:
            return True
        time.sleep(PAUSE_SECONDS)
    return False
