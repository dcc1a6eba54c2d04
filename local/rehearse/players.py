"""Plays the autoscalers of all tenants: each asks in turn for all that its worker groups may have.

In the order in which a plan reckons `GPUs in turn`: tenants as in the file, of each the greatest workers first. What
does not start is taken back, as Ray's autoscaler takes back workers that nobody wants any more, so that it stands in
nobody's way.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from local.rehearse.cluster import Cluster
from local.rehearse.observed import failure
from stacks.planning.plan import GroupPlan, Plan, TenantPlan

GROUP_SECONDS = 45.0
"""So long may pass until it is known what becomes of a group's workers: some rounds of the scheduler, one a second."""

QUIET_SECONDS = 1.5
"""A group of which nothing has changed for so long, and of which each pod runs or is told why not, is settled: what
waits for pods that are about to go is placed in the scheduler's next round."""

PAUSE_SECONDS = 0.3


@dataclass(frozen=True)
class Ask:
    """What is asked for a worker group."""

    cluster: str
    group: str
    gpus: int
    """Of a pod."""

    hosts: int
    """Pods of a worker."""

    most: int
    """Workers that it may have."""

    pools: tuple[str, ...]


def asks(plan: Plan) -> Iterator[Ask]:
    """All that tenants ask for, in turn. A group without a cap asks for as many as the nodes could hold."""
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
    """Ask for all of it. Returns the groups that did not settle in time. `show`: told how far it is."""
    everything, late = list(asks(plan)), []
    for index, ask in enumerate(everything):
        show(index / len(everything), f"{ask.cluster} {ask.group}")
        if not _play(cluster, plan, ask):
            late.append(f"{ask.cluster} {ask.group}")
    return late


def enough(plan: Plan, ask: Ask, taken: Mapping[str, int], running: int) -> int:
    """How many workers to ask for: all, or one more than there are free GPUs for, which shows the same.

    `taken`: GPUs that are taken, by pool. `running`: workers that it has.
    """
    if not ask.gpus:
        return ask.most
    free = sum(pool.count * pool.gpus - taken.get(pool.pool, 0) for pool in plan.pools if pool.pool in ask.pools)
    return min(ask.most, running + free // (ask.gpus * ask.hosts) + 1)


def _play(cluster: Cluster, plan: Plan, ask: Ask) -> bool:
    """Ask for the workers of a group, and take back those that do not start. Returns whether it settled in time."""
    has = len(cluster.workers(ask.cluster, ask.group)) // ask.hosts
    wanted = enough(plan, ask, cluster.taken(), has)
    cluster.scale(ask.cluster, ask.group, wanted, [])
    settled = settles(cluster, ask, wanted * ask.hosts)
    pods = cluster.workers(ask.cluster, ask.group)
    running = [pod for pod in pods if pod.running]
    if len(running) < wanted * ask.hosts:
        idle = [pod.name for pod in pods if not pod.running]
        cluster.scale(ask.cluster, ask.group, len(running) // ask.hosts, idle)
        settled &= settles(cluster, ask, len(running))
    return settled


def settles(cluster: Cluster, ask: Ask, pods: int) -> bool:
    """Wait until so many pods of the group run, or it is known why they do not. Returns False if it never is."""
    begun = time.monotonic()
    last: object = None
    since = begun
    while (now := time.monotonic()) < begun + GROUP_SECONDS:
        found, refused = cluster.workers(ask.cluster, ask.group), failure(cluster.ray(ask.cluster))
        waiting = [pod for pod in found if not pod.running]
        # KubeRay reports a refusal until its next round without one, which may be about what was taken back by now.
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
