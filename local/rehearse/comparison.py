"""Compares a plan's predictions with the actual results. Pure functions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from components.ray_job.manifests import SUBMITTER_GROUP
from core.nodes import gpus_of
from local.rehearse.observed import Observed
from stacks.planning.plan import ClusterPlan, Plan
from stacks.settings import StackSettings

UNREPORTED = "the scheduler has reported nothing"


@dataclass(frozen=True)
class Beside:
    """A predicted number and the actual one."""

    predicted: int
    found: int

    @property
    def differ(self) -> bool:
        return self.predicted != self.found


Numbers = Mapping[str, Beside]


@dataclass(frozen=True)
class Waiting:
    """Pods of a group that are on no node, or that were never created."""

    owner: str
    """The RayCluster, or Redis."""

    group: str
    pods: Beside
    reasons: tuple[str, ...] = ()
    """As the scheduler reports them."""


@dataclass(frozen=True)
class Start:
    """The initial pods of the stack."""

    waiting: tuple[Waiting, ...]
    pools: Numbers
    """Used GPUs by pool."""

    tenants: Numbers
    """Used GPUs by tenant."""


@dataclass(frozen=True)
class Demand:
    """What tenants use after each has requested its maximum, in the order of the file."""

    tenants: Numbers
    pools: Mapping[str, int]
    unsettled: tuple[str, ...] = field(default=())
    """Groups that had not settled within the time limit."""


def start(stack: StackSettings, plan: Plan, found: Observed) -> Start:
    """The start of the stack, compared with its plan."""
    late = _predicted_to_wait(stack, plan)
    # A gang uses nothing until all of it fits, but a plan counts pods one by one.
    owners = {owner for owner, _ in late} if _gangs(stack) else set()
    predicted_by_owner: Counter[str] = Counter()
    predicted_by_pool: Counter[str] = Counter()
    for node in plan.started.nodes:
        for pod in node.pods:
            if pod.owner not in owners:
                predicted_by_owner[pod.owner] += int(pod.gpus)
                predicted_by_pool[node.pool.pool] += int(pod.gpus)
    by_owner, by_pool = found.gpus_by_owner(), found.gpus_by_pool()
    return Start(
        waiting=tuple(_waiting(plan, late, found)),
        pools={each.pool: Beside(predicted_by_pool[each.pool], by_pool[each.pool]) for each in plan.pools},
        tenants={
            tenant.settings.name: Beside(
                sum(predicted_by_owner[cluster.name] for cluster in tenant.clusters),
                sum(by_owner[cluster.name] for cluster in tenant.clusters),
            )
            for tenant in plan.tenants
        },
    )


def demand(plan: Plan, found: Observed, unsettled: tuple[str, ...] = ()) -> Demand:
    """What tenants use at their largest, compared with the plan's `GPUs in file order`."""
    by_owner = found.gpus_by_owner()
    return Demand(
        tenants={
            tenant.settings.name: Beside(
                int(gpus_of(tenant.in_file_order)), sum(by_owner[each.name] for each in tenant.clusters)
            )
            for tenant in plan.tenants
        },
        pools={pool.pool: found.gpus_by_pool()[pool.pool] for pool in plan.pools},
        unsettled=unsettled,
    )


def _gangs(stack: StackSettings) -> bool:
    return stack.scheduler is not None


def _predicted_to_wait(stack: StackSettings, plan: Plan) -> Counter[tuple[str, str]]:
    """Pods that are predicted to wait, by owner and group; with gangs, all of a RayCluster."""
    found = Counter({(each.owner, each.group): number * each.hosts for each, number in plan.left_out})
    if _gangs(stack):
        late = {owner for owner, _ in found}
        for cluster in plan.clusters:
            if cluster.name in late:
                found |= _starts(cluster)
    return found


def _waiting(plan: Plan, late: Counter[tuple[str, str]], found: Observed) -> list[Waiting]:
    starts: Counter[tuple[str, str]] = Counter()
    for cluster in plan.clusters:
        starts |= _starts(cluster)
    placed = Counter((pod.owner, pod.group) for pod in found.placed())
    pods = Counter((pod.owner, pod.group) for pod in found.waiting())
    rows = []
    for key in dict.fromkeys([*starts, *late, *pods]):
        if key[1] == SUBMITTER_GROUP:
            continue  # it starts when its RayCluster is ready, and on a simulated node ends at once
        # Pods that were never created are not among the waiting pods.
        waits = max(starts[key] - placed[key], pods[key])
        if waits or late[key]:
            reasons = [pod.waits or UNREPORTED for pod in found.waiting() if (pod.owner, pod.group) == key]
            rows.append(Waiting(*key, Beside(late[key], waits), tuple(dict.fromkeys(reasons))))
    return rows


def _starts(cluster: ClusterPlan) -> Counter[tuple[str, str]]:
    """The initial pods of a RayCluster, by its name and group."""
    groups = [group.workers for group in cluster.groups]
    return Counter({(cluster.name, each.group): each.least * each.hosts for each in groups})
