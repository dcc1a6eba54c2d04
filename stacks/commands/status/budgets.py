"""Queues and quotas: what is used of them, their limits, and what waits. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from components.queues.settings import Backend
from components.ray_cluster.readiness import gang_waits
from components.tenant.demand import Usage, total
from components.tenant.settings import ENTRIES
from core.body import Body
from core.quantities import amount
from stacks.commands.status.snapshot import Found

COUNTED = ("gpus", "cpu", "memory", "pods")
"""The entries of a quota that are shown, by their keys in the stack file."""

QUEUES: Mapping[Backend, str] = {"volcano": "queues", "kueue": "clusterqueues"}
"""Plurals of the kinds that are queues."""


@dataclass(frozen=True)
class QueueStatus:
    name: str
    ok: bool
    used: Usage = field(default_factory=dict)
    """Amounts by resource, as pods request them."""
    deserved: Usage = field(default_factory=dict)
    limit: Usage = field(default_factory=dict)
    """Resources that are not in it have no limit."""
    waiting: int | None = None
    """RayClusters and RayJobs that wait: with Kueue all of the queue, with Volcano those of the shown tenants; None if
    this account must not read them."""
    admitted: int | None = None
    """Those that do not wait."""
    reasons: tuple[str, ...] = ()
    """Why nothing can start in it."""


@dataclass(frozen=True)
class QuotaStatus:
    name: str
    used: Mapping[str, Decimal]
    hard: Mapping[str, Decimal]
    """Amounts by the keys of COUNTED."""


def queue_statuses(
    names: Iterable[str], backend: Backend, shared: Found, namespaces: Iterable[Found]
) -> list[QueueStatus]:
    """The status of each queue. `namespaces`: those of the shown tenants."""
    plural = QUEUES[backend]
    if plural in shared.unreadable:
        return []
    live = {each["metadata"]["name"]: each for each in shared.all(plural)}
    found = list(namespaces)
    why = "it is in the stack file and not in the cluster: `up` creates it"
    return [
        (_of_volcano(live[name], found) if backend == "volcano" else _of_kueue(live[name]))
        if name in live
        else QueueStatus(name, ok=False, reasons=(why,))
        for name in names
    ]


def _of_volcano(body: Body, namespaces: Sequence[Found]) -> QueueStatus:
    """Volcano has no numbers of waiting gangs in its Queue (volcano 1.14.1, queue_controller_action.go: syncQueue)."""
    spec, status, name = body["spec"], body.get("status") or {}, body["metadata"]["name"]
    gangs = [
        gang_waits(each)
        for found in namespaces
        for each in found.all("podgroups")
        if (each["spec"].get("queue") or "default") == name
    ]
    known = not any("podgroups" in found.unreadable for found in namespaces)
    state = status.get("state") or "Unknown"
    return QueueStatus(
        name,
        state == "Open",
        _amounts(status.get("allocated")),
        _amounts(spec.get("deserved")),
        _amounts(spec.get("capability")),
        sum(gangs) if known else None,
        len(gangs) - sum(gangs) if known else None,
        () if state == "Open" else (f"it is {state}, and nothing starts in a queue that is not Open",),
    )


def _of_kueue(body: Body) -> QueueStatus:
    spec, status = body["spec"], body.get("status") or {}
    quotas = [
        each
        for group in spec.get("resourceGroups") or ()
        for flavor in group.get("flavors") or ()
        for each in flavor.get("resources") or ()
    ]
    deserved = total(_amounts({each["name"]: each.get("nominalQuota", 0)}) for each in quotas)
    limit = total([deserved, *(_amounts({each["name"]: each.get("borrowingLimit") or 0}) for each in quotas)])
    # Without a borrowingLimit a queue borrows everything that its Cohort has.
    borrows = {each["name"] for each in quotas if each.get("borrowingLimit") is None and spec.get("cohortName")}
    active = next((each for each in status.get("conditions") or () if each["type"] == "Active"), None)
    ok = active is not None and active["status"] == "True"
    why = active.get("message") or active.get("reason") if active else "Kueue has not looked at it"
    used = [each for flavor in status.get("flavorsUsage") or () for each in flavor.get("resources") or ()]
    return QueueStatus(
        body["metadata"]["name"],
        ok,
        total(_amounts({each["name"]: each.get("total") or 0}) for each in used),
        deserved,
        {resource: value for resource, value in limit.items() if resource not in borrows},
        int(status.get("pendingWorkloads") or 0),
        int(status.get("admittedWorkloads") or 0),
        () if ok else (f"it is not active: {why}",),
    )


def quota_status(body: Body) -> QuotaStatus:
    status = body.get("status") or {}
    used, hard = status.get("used") or {}, status.get("hard") or body["spec"].get("hard") or {}
    keys = {key: ENTRIES[key][0] for key in COUNTED}
    return QuotaStatus(
        body["metadata"]["name"],
        {key: amount(str(used[entry])) for key, entry in keys.items() if entry in used},
        {key: amount(str(hard[entry])) for key, entry in keys.items() if entry in hard},
    )


def _amounts(quantities: Mapping[str, object] | None) -> Usage:
    return {resource: amount(str(value)) for resource, value in (quantities or {}).items()}
