"""The status of a stack as an object for programs. Pure functions.

Amounts are numbers, memory in bytes, ages and durations in seconds; null if a value is not known or not set. Keys stay
the same. docs/status.md describes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from stacks.commands.plan.report import numbers
from stacks.commands.status.budgets import COUNTED
from stacks.commands.status.clusters import ClusterStatus, Gpus, State
from stacks.commands.status.jobs import JobStatus
from stacks.commands.status.services import ServiceStatus
from stacks.commands.status.tenants import StackStatus, TenantStatus


def as_object(name: str, status: StackStatus) -> dict[str, Any]:
    """The status for programs."""
    return {
        "stack": name,
        "at": status.live.at.isoformat(timespec="seconds"),
        "ok": status.ok,
        "ready": sum(each.state is State.READY for each in status.clusters),
        "clusters": len(status.clusters),
        "gpus": _gpus_object(status.gpus),
        "tenants": [_tenant_object(each) for each in status.tenants],
        "queues": [
            {
                "queue": each.name,
                "ok": each.ok,
                "used": numbers(each.used),
                "deserved": numbers(each.deserved),
                "limit": numbers(each.limit),
                "admitted": each.admitted,
                "waiting": each.waiting,
                "reasons": list(each.reasons),
            }
            for each in status.queues
        ],
        "cml": [
            {
                "cluster": each.name,
                "state": each.state,
                "ok": each.ok,
                "head": each.head,
                "workers": {"joined": each.joined, "desired": each.desired},
                "gpus": each.gpus,
                "dashboardUrl": each.url,
                "reasons": list(each.reasons),
            }
            for each in status.cml
        ],
        "unreadable": [
            {"namespace": each.namespace, "kinds": list(each.kinds), "reason": each.reason}
            for each in status.unreadable
        ],
    }


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
        "gpus": _gpus_object(tenant.gpus),
        "clusters": [_cluster_object(each) for each in tenant.clusters],
        "externalClusters": [
            {
                "cluster": each.name,
                "state": each.state,
                "ok": each.ok,
                "address": each.address,
                "checked": each.checked,
                "rayVersion": each.ray_version,
                "reasons": list(each.reasons),
            }
            for each in tenant.external
        ],
        "jobs": [_job_object(each) for each in tenant.jobs],
        "services": [_service_object(each) for each in tenant.services],
        "quotas": [
            {"quota": each.name, "used": _amounts(each.used), "hard": _amounts(each.hard)} for each in tenant.quotas
        ],
    }


def _cluster_object(cluster: ClusterStatus) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "state": cluster.state,
        "ok": cluster.ok,
        "inStackFile": cluster.in_stack_file,
        "owner": cluster.owner,
        "age": cluster.age,
        "head": cluster.head,
        "groups": [{"group": each.name, "ready": each.ready, "desired": each.desired} for each in cluster.groups],
        "gpus": _gpus_object(cluster.gpus),
        "conditions": list(cluster.conditions),
        "reasons": list(cluster.reasons),
    }


def _job_object(job: JobStatus) -> dict[str, Any]:
    return {
        "job": job.name,
        "ok": job.ok,
        "inStackFile": job.in_stack_file,
        "jobDeploymentStatus": job.deployment,
        "jobStatus": job.job,
        "reason": job.reason,
        "message": job.message,
        "cluster": job.cluster,
        "age": job.age,
        "since": job.since,
        "duration": job.duration,
        "reasons": list(job.reasons),
    }


def _service_object(service: ServiceStatus) -> dict[str, Any]:
    return {
        "service": service.name,
        "ok": service.ok,
        "inStackFile": service.in_stack_file,
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
        "conditions": list(service.conditions),
        "reasons": list(service.reasons),
    }


def _gpus_object(gpus: Gpus) -> dict[str, int | None]:
    return {"held": gpus.held, "waiting": gpus.waiting, "most": gpus.most}


def _amounts(amounts: Mapping[str, Decimal]) -> dict[str, float | int | None]:
    found = {key: amounts.get(key) for key in COUNTED}
    return {
        key: None if value is None else int(value) if value == int(value) else float(value)
        for key, value in found.items()
    }
