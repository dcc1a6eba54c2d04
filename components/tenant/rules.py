"""Finds RayClusters whose pods the tenant's quota or limits would refuse."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from components.tenant.demand import RESOURCES, Container, Demand, Given, Group, Usage, defaults, total
from components.tenant.settings import ENTRIES, LimitSettings, QuotaSettings, hard
from core.problems import Path, Problem, dotted
from core.quantities import amount, shown

_KEYS = {entry: key for key, entries in ENTRIES.items() for entry in entries}


@dataclass(frozen=True)
class TenantProblem:
    """A problem of a tenant's cluster or quota."""

    cluster: int | None
    """Index of the cluster in whose body the path is; None: the path is in the quota."""
    problem: Problem


def beyond_limits(demands: Sequence[Demand], limits: LimitSettings | None) -> Iterator[TenantProblem]:
    """Containers of RayClusters that the LimitRange would refuse, or give too few resources."""
    if limits is None:
        return
    given = defaults(limits)
    for index, demand in enumerate(demands):
        for group in demand.groups:
            for container in group.containers:
                yield from (TenantProblem(index, problem) for problem in _of_container(container, limits, given))


def beyond_quota(
    demands: Sequence[Demand], quota: QuotaSettings, beside: Sequence[Demand] = ()
) -> Iterator[TenantProblem]:
    """Quota entries below the initial usage, and worker groups that could never start in addition to it.

    `demands`: all clusters of the tenant in the stack. `beside`: StatefulSets that the stack creates in the namespace.
    Other objects of the namespace are not known here.
    """
    starting = [(each.name, each.at_first) for each in (*beside, *demands)]
    at_first = total(usage for _, usage in starting)
    for entry, most in hard(quota).items():
        path = (_KEYS[entry],) if entry in _KEYS else ("hard", entry)
        taken = at_first.get(entry, Decimal(0))
        if taken > amount(most):
            yield TenantProblem(None, _too_small(path, entry, most, taken, starting))
            continue
        for index, each in enumerate(demands):
            yield from (
                TenantProblem(index, problem) for problem in _cannot_start(each.groups, path, entry, most, taken)
            )


def _too_small(path: Path, entry: str, most: str, taken: Decimal, starting: Sequence[tuple[str, Usage]]) -> Problem:
    parts = [f"{name} {shown(entry, part)}" for name, usage in starting if (part := usage.get(entry))]
    message = (
        f"{entry} is limited to {most}, and the stack's clusters start with {shown(entry, taken)} "
        f"({', '.join(parts)}): raise it, or let them start with less"
    )
    return Problem(path, most, message, "quota-fits-clusters")


def _cannot_start(groups: Iterable[Group], path: Path, entry: str, most: str, taken: Decimal) -> Iterator[Problem]:
    for group in groups:
        one = group.usage.get(entry, Decimal(0))
        if group.at_first == 0 and group.most != 0 and taken + one > amount(most):
            message = (
                f"quota.{dotted(path)} is {most}, and a worker of {group.title} takes {entry} {shown(entry, one)} "
                f"beside the {shown(entry, taken)} that the stack's clusters start with, so none could start: raise "
                "the quota, or remove the group"
            )
            yield Problem(group.path, None, message, "quota-fits-worker")


def _of_container(container: Container, limits: LimitSettings, given: Given) -> Iterator[Problem]:
    for resource in RESOURCES:
        request, limit = container.requests.get(resource), container.limits.get(resource)
        if request is None:
            if container.runs_ray and (gets := given["requests"].get(resource)):
                fault = f"sets no {resource}, and the tenant's limits would give it {gets}, which is meant for sidecars"
                yield _fault(container, "limits", resource, f"{fault}: set its {resource}", "ray-without-amounts")
            continue
        if limit is None and (gets := given["limits"].get(resource)) and request > amount(gets):
            fault = (
                f"requests {resource} {shown(resource, request)} without a limit, and the tenant's limits give it "
                f"{gets}, which is less: set its limit"
            )
            yield _fault(container, "requests", resource, fault, "limit-below-request")
        most, least = getattr(limits.max, resource), getattr(limits.min, resource)
        if limit is not None and most and limit > amount(most):
            fault = f"has {resource} {shown(resource, limit)}, more than the tenant's limits.max.{resource} of {most}"
            yield _fault(container, "limits", resource, f"{fault}: lower it, or raise the maximum", "within-limits")
        if least and request < amount(least):
            fault = (
                f"requests {resource} {shown(resource, request)}, less than the tenant's limits.min.{resource} of "
                f"{least}: raise it, or lower the minimum"
            )
            yield _fault(container, "requests", resource, fault, "within-limits")


def _fault(container: Container, part: str, resource: str, message: str, rule: str) -> Problem:
    path = (*container.path, "resources", part, resource)
    return Problem(path, None, f"container {container.name!r} {message}", rule)
