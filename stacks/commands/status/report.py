"""The status of a stack for people: a summary, tables, and a line for each reason; and as an object for programs. Pure
functions.

Amounts in the object are numbers, memory in bytes, ages and durations in seconds; null if a value is not known or not
set. Keys stay the same. docs/status.md describes them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from pydantic.alias_generators import to_camel

from core.nodes import GPU_RESOURCE
from core.problems import in_one_line
from core.quantities import shown
from stacks.commands.plan.report import NONE, Table, figure, numbers, plain, triple
from stacks.commands.status.budgets import COUNTED, QueueStatus, QuotaStatus
from stacks.commands.status.clusters import ClusterStatus, Gpus, State
from stacks.commands.status.cml import CmlState, CmlStatus
from stacks.commands.status.external_ray import ExternalStatus
from stacks.commands.status.owners import JobStatus, ServiceStatus
from stacks.commands.status.snapshot import Usage
from stacks.commands.status.tenants import StackStatus, TenantStatus

CML, REMOTE_JOBS, QUEUES = "Cloudera ML", "Jobs outside Kubernetes", "Queues"
"""Titles of sections."""

_UNKNOWN = "?"

_LONGEST, _END = 400, 200
"""Characters of a message that are shown, and how many of these are its end, where the innermost error is. The JSON
output has all of it."""


@dataclass(frozen=True)
class Section:
    title: str
    tables: tuple[Table, ...]
    reasons: tuple[str, ...]
    """What is not as desired, and what waits: a line each."""


def sections(status: StackStatus) -> list[Section]:
    """The report below its summary: what does not run of the platform, a section for each tenant, one for queues,
    one for what could not be read."""
    made = [Section("Platform", (), tuple(each.line for each in status.platform))] if status.platform else []
    made += [_tenant(each) for each in status.tenants]
    if status.cml:
        made.append(section_of_cml(status.cml))
    if status.remote_jobs:
        made.append(_remote_jobs(status.remote_jobs))
    if status.queues:
        reasons = [line for each in status.queues for line in _lines("Queue", each.name, each.reasons)]
        made.append(Section(QUEUES, (_queues(status.queues),), tuple(reasons)))
    if status.unreadable:
        made.append(Section("Not readable", (), tuple(_unreadable(status))))
    return made


def summary(name: str, status: StackStatus) -> str:
    """One line: what is ready, which GPUs are held, what waits."""
    return f"{name}: {'; '.join(figures(status))}"


def figures(status: StackStatus) -> list[str]:
    down = [each.short for each in status.platform]
    states = Counter(each.state for each in status.clusters)
    others = ", ".join(f"{number} {state}" for state, number in states.items() if state is not State.READY)
    outside = status.cml or status.remote_jobs
    clusters = f"{states[State.READY]} of {len(status.clusters)} RayClusters ready{f' ({others})' if others else ''}"
    parts = [*down, clusters, f"GPUs: {_gpus(status.gpus)}"] if status.tenants or not outside else down
    if status.cml:
        ready = sum(each.state is CmlState.READY for each in status.cml)
        parts.append(f"{ready} of {len(status.cml)} Ray clusters on Cloudera ML ready")
    if status.remote_jobs:
        parts.append(f"jobs outside Kubernetes: {len(status.remote_jobs)}")
    jobs = Counter(each.deployment for tenant in status.tenants for each in tenant.jobs)
    if jobs:
        parts.append(f"RayJobs: {', '.join(f'{number} {state}' for state, number in jobs.items())}")
    services = [each for tenant in status.tenants for each in tenant.services]
    if services:
        parts.append(f"{sum(each.ok for each in services)} of {len(services)} RayServices serve")
    if waiting := sum(each.waiting or 0 for each in status.queues):
        parts.append(f"{waiting} in queues")
    return parts


def duration(seconds: int | None) -> str:
    """A time for people, in its two largest units at most: `45s`, `12m`, `5h3m`, `4d7h`."""
    if seconds is None:
        return NONE
    for (unit, size), (lower, part) in ((("d", 86400), ("h", 3600)), (("h", 3600), ("m", 60))):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size}{unit}{f'{rest}{lower}' if rest else ''}"
    return f"{seconds // 60}m" if seconds >= 120 else f"{seconds}s"


def _gpus(gpus: Gpus) -> str:
    of = "" if gpus.most is None else f" of {gpus.most}"
    held = _UNKNOWN if gpus.held is None else str(gpus.held)
    return f"{held}{of} held{f', {gpus.waiting} wait' if gpus.waiting else ''}"


def _tenant(tenant: TenantStatus) -> Section:
    work = [_jobs(tenant.jobs), _services(tenant.services)]
    tables = [_clusters(tenant.clusters), _external(tenant.external), *work, _quotas(tenant.quotas)]
    tables += [_usage(tenant.usage)] if tenant.usage else []
    named = tenant.name if tenant.name == tenant.namespace else f"{tenant.name}, namespace {tenant.namespace}"
    nothing = "" if any(table.rows for table in tables) else ": nothing"
    return Section(f"{named}{nothing}", tuple(table for table in tables if table.rows), tuple(_reasons(tenant)))


def _reasons(tenant: TenantStatus) -> Iterator[str]:
    """The reasons of all objects. What a RayJob or RayService repeats of its RayCluster is shown with it alone."""
    users = [*(("RayJob", each.name, each.reasons) for each in tenant.jobs)]
    users += (("RayService", each.name, each.reasons) for each in tenant.services)
    repeated = [line for _, _, lines in users for line in lines]
    for each in tenant.clusters:
        own = [line for line in each.reasons if not (each.owner and any(other.endswith(line) for other in repeated))]
        yield from _lines("RayCluster", each.name, own)
    for external in tenant.external:
        yield from _lines("External cluster", external.name, external.reasons)
    for user in users:
        yield from _lines(*user)


_GENERATED = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
"""The end of a pod's name that Kubernetes generates (apimachinery, util/rand)."""


_REFUSED = " is forbidden: "
"""Between an object and why the API server refuses it."""


def _lines(kind: str, name: str, reasons: Iterable[str]) -> Iterator[str]:
    """A line for each reason. Those that differ only in the name of a pod share one, and so do a condition and the
    events with the same refusal."""
    own = f"{kind} {name}: "
    same: dict[str, list[str]] = {}
    for each in reasons:
        line = _cut(f"{own}{each.removeprefix(own)}")
        refusal = line.partition(_REFUSED)[2]
        same.setdefault(refusal or _GENERATED.sub("", line), []).append(line)
    yield from (f"{lines[0]} ({len(lines)} times)" if len(lines) > 1 else lines[0] for lines in same.values())


def _cut(text: str) -> str:
    line = in_one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _END]}...{line[-_END:]}"


def _clusters(clusters: tuple[ClusterStatus, ...]) -> Table:
    rows = []
    for each in clusters:
        held, waiting = (_UNKNOWN if number is None else str(number) for number in (each.gpus.held, each.gpus.waiting))
        most = "any" if each.gpus.most is None else str(each.gpus.most)
        limit = NONE if each.state in (State.MISSING, State.UNKNOWN) else most
        state = (each.name, str(each.state), each.head or NONE, _workers(each))
        rows.append((*state, held, waiting, limit, duration(each.age), _origin(each)))
    columns = ("RayCluster", "State", "Head", "Workers ready", "GPUs held", "Waiting", "At most", "Age", "From")
    return Table("", columns, tuple(rows))


def _external(clusters: tuple[ExternalStatus, ...]) -> Table:
    rows = tuple(
        (each.name, str(each.state), each.checked or NONE, each.ray_version or NONE, each.address) for each in clusters
    )
    return Table("", ("External cluster", "State", "Checked", "Ray", "Address"), rows)


def section_of_cml(clusters: Sequence[CmlStatus]) -> Section:
    reasons = [line for each in clusters for line in _lines("Ray cluster", each.name, each.reasons)]
    return Section(CML, (_cml(clusters),), tuple(reasons))


def _remote_jobs(jobs: Sequence[tuple[str, str]]) -> Section:
    clusters = dict.fromkeys(cluster for _, cluster in jobs)
    reasons = (f"`ray-platform runs STACK --cluster {each}` asks the head of {each} for its jobs" for each in clusters)
    return Section(REMOTE_JOBS, (Table("", ("Job", "Ray cluster"), tuple(jobs)),), tuple(reasons))


def applications_of_cml(clusters: Sequence[CmlStatus]) -> Table:
    rows = tuple((each.name, each.status, each.node or NONE) for cluster in clusters for each in cluster.applications)
    return Table("", ("Application", "Status", "Ray node"), rows)


def _cml(clusters: Sequence[CmlStatus]) -> Table:
    rows = tuple(
        (
            each.name,
            str(each.state),
            each.head or NONE,
            f"{_UNKNOWN if each.gpus is None else each.joined}/{each.desired}",
            _UNKNOWN if each.gpus is None else str(each.gpus),
            each.url,
        )
        for each in clusters
    )
    return Table("", ("Ray cluster", "State", "Head", "Workers joined", "GPUs held", "Dashboard"), rows)


def _workers(cluster: ClusterStatus) -> str:
    """Groups that have workers, or should have some."""
    groups = [each for each in cluster.groups if each.ready != 0 or each.desired]
    written = (f"{each.name} {_UNKNOWN if each.ready is None else each.ready}/{each.desired}" for each in groups)
    return ", ".join(written) or NONE


def _origin(each: ClusterStatus | JobStatus | ServiceStatus) -> str:
    return "stack file" if each.in_stack_file else each.owner or "outside"


def _jobs(jobs: tuple[JobStatus, ...]) -> Table:
    rows = []
    for each in jobs:
        times = (duration(each.age), duration(each.duration))
        rows.append((each.name, each.deployment, each.job or NONE, each.cluster or NONE, *times, _origin(each)))
    return Table("", ("RayJob", "State", "Job", "RayCluster", "Age", "Duration", "From"), tuple(rows))


def _services(services: tuple[ServiceStatus, ...]) -> Table:
    rows = []
    for each in services:
        running = sum(application.status == "RUNNING" for application in each.applications)
        applications = f"{running}/{len(each.applications)}"
        clusters = ", ".join(f"{name} ({role})" for role, name in each.clusters.items()) or NONE
        state = each.status or "not ready"
        numbers = (applications, str(each.endpoints))
        rows.append((each.name, state, *numbers, clusters, duration(each.age), _origin(each)))
    return Table("", ("RayService", "State", "Running", "Endpoints", "RayClusters", "Age", "From"), tuple(rows))


def _quotas(quotas: tuple[QuotaStatus, ...]) -> Table:
    rows = tuple((each.name, *(_of_quota(each, key) for key in COUNTED)) for each in quotas)
    return Table("", ("Quota", "GPUs", "CPUs", "Memory", "Pods"), rows)


def _of_quota(quota: QuotaStatus, key: str) -> str:
    if key not in quota.hard:
        return NONE
    used = shown(key, quota.used[key]) if key in quota.used else _UNKNOWN
    return f"{used} of {shown(key, quota.hard[key])}"


def _usage(usage: Usage) -> Table:
    values = (NONE if value is None else f"{value:.1f}".removesuffix(".0") for value in asdict(usage).values())
    columns = ("Recorded", "GPUs held", "Used", "GPU-hours in 24 h", "Used", "Wasted", "Cost in 24 h")
    return Table("", columns, (("by Prometheus", *values),))


def _queues(queues: tuple[QueueStatus, ...]) -> Table:
    rows = []
    for each in queues:
        numbers_of = [_UNKNOWN if number is None else str(number) for number in (each.admitted, each.waiting)]
        used = figure({GPU_RESOURCE: Decimal(0), **each.used}, GPU_RESOURCE)
        rest = (triple(each.deserved), triple(each.limit))
        rows.append((each.name, used, *rest, *numbers_of))
    columns = ("Queue", "GPUs held", "Deserved (GPUs / CPUs / memory)", "Limit", "Admitted", "Waiting")
    return Table("", columns, tuple(rows))


def _unreadable(status: StackStatus) -> Iterator[str]:
    for each in status.unreadable:
        where = f"namespace {each.namespace}" if each.namespace else "whole cluster"
        yield _cut(f"{where}: {', '.join(each.kinds)}: {each.reason}")


def as_object(name: str, status: StackStatus) -> dict[str, Any]:
    return {
        "stack": name,
        "at": status.live.at.isoformat(timespec="seconds"),
        "ok": status.ok,
        "ready": sum(each.state is State.READY for each in status.clusters),
        "clusters": len(status.clusters),
        "platform": [each.line for each in status.platform],
        "gpus": asdict(status.gpus),
        "tenants": [_tenant_object(each) for each in status.tenants],
        "queues": [
            {
                "queue": each.name,
                "ok": each.ok,
                "used": numbers(each.used),
                "deserved": numbers(each.deserved),
                "limit": numbers(each.limit),
                **_values(each, "admitted", "waiting", "reasons"),
            }
            for each in status.queues
        ],
        "cml": [cml_as_object(each) for each in status.cml],
        "remoteJobs": [{"job": name, "cluster": cluster} for name, cluster in status.remote_jobs],
        "unreadable": [asdict(each) for each in status.unreadable],
    }


def cml_as_object(cluster: CmlStatus) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        **_values(cluster, "state", "ok", "head"),
        "workers": {"joined": cluster.joined, "desired": cluster.desired},
        "gpus": cluster.gpus,
        "dashboardUrl": cluster.url,
        "reasons": list(cluster.reasons),
        "applications": [
            {"application": each.name, "status": each.status, "node": each.node} for each in cluster.applications
        ],
    }


def _values(each: object, *fields: str) -> dict[str, Any]:
    """These fields of a status, by their names: `in_stack_file` is `inStackFile`."""
    return {to_camel(field): getattr(each, field) for field in fields}


@contextmanager
def in_lines(name: str) -> Iterator[Callable[[StackStatus, str], None]]:
    """Writes a line for each report: its object, or why there is none."""

    def write(status: StackStatus, error: str) -> None:
        print(json.dumps({"stack": name, "error": error} if error else as_object(name, status)), flush=True)

    yield write


def _tenant_object(tenant: TenantStatus) -> dict[str, Any]:
    return {
        "tenant": tenant.name,
        "namespace": tenant.namespace,
        "ok": tenant.ok,
        "gpus": asdict(tenant.gpus),
        "clusters": [_cluster_object(each) for each in tenant.clusters],
        "externalClusters": [
            {"cluster": each.name, **_values(each, "state", "ok", "address", "checked", "ray_version", "reasons")}
            for each in tenant.external
        ],
        "jobs": [_job_object(each) for each in tenant.jobs],
        "services": [_service_object(each) for each in tenant.services],
        "quotas": [
            {"quota": each.name, "used": _amounts(each.used), "hard": _amounts(each.hard)} for each in tenant.quotas
        ],
        "usage": {to_camel(key): value for key, value in asdict(tenant.usage).items()} if tenant.usage else None,
    }


def _cluster_object(cluster: ClusterStatus) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        **_values(cluster, "state", "ok", "in_stack_file", "owner", "age"),
        "groups": [{"group": each.name, "ready": each.ready, "desired": each.desired} for each in cluster.groups],
        "gpus": asdict(cluster.gpus),
        **_values(cluster, "status", "reasons"),
    }


def _job_object(job: JobStatus) -> dict[str, Any]:
    return {
        "job": job.name,
        **_values(job, "ok", "in_stack_file"),
        "jobDeploymentStatus": job.deployment,
        "jobStatus": job.job,
        **_values(job, "reason", "message", "cluster", "age", "since", "duration", "reasons"),
    }


def _service_object(service: ServiceStatus) -> dict[str, Any]:
    return {
        "service": service.name,
        **_values(service, "ok", "in_stack_file"),
        "serviceStatus": service.status,
        "endpoints": service.endpoints,
        "clusters": {role: service.clusters.get(role) for role in ("active", "pending")},
        "age": service.age,
        "applications": [
            {
                "application": each.name,
                "on": each.role,
                "status": each.status,
                "message": each.message,
                "deployments": [
                    {"deployment": name, "status": state, "message": message}
                    for name, state, message in each.deployments
                ],
            }
            for each in service.applications
        ],
        **_values(service, "conditions", "reasons"),
    }


def _amounts(amounts: Mapping[str, Decimal]) -> dict[str, float | int | None]:
    return {key: plain(amounts.get(key)) for key in COUNTED}
