"""Runs on a cluster outside Kubernetes, as its head lists them now. Nothing keeps records of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from components.payloads.run_history.in_ray import OF_A_DRIVER, SHARED, SUBMISSION, Listed, facts, listed
from components.payloads.run_history.redaction import Redaction
from components.run_history.manifests import redaction
from core.problems import in_one_line
from stacks.commands.runs.history import Histories, Run
from stacks.commands.status.cml import inputs_of
from stacks.settings import StackSettings

if TYPE_CHECKING:
    from components.remote_job.jobs import Jobs


def target_of(settings: StackSettings, stack: str, cluster: str) -> Mapping[str, Any] | None:
    """How a cluster of `cml.clusters` or of the stack's own `externalClusters` is reached; None if there is none of
    that name. `stack`: the stack's name. Raises CmlError."""
    from components.remote_job.manifests import target, target_on_cml

    if on_cml := inputs_of(settings.cml, stack, cluster):
        from stacks.commands.status.cml import address_of_head

        return target_on_cml(cluster, *address_of_head(on_cml), on_cml["caFile"])
    return next((target(each) for each in settings.external_clusters if each.name == cluster), None)


def read(target: Mapping[str, Any]) -> tuple[Histories, str]:
    """The jobs that a head lists, the newest first, and what a reader has to know of them. Raises RemoteJobError."""
    cluster = target["cluster"]
    with _jobs(target) as jobs:
        found = jobs.listed()
    runs = [Run(cluster, each) for each in _records(cluster, found)]
    unread = f" {len(found) - len(runs)} of them cannot be read." if len(runs) < len(found) else ""
    newest = sorted(runs, key=lambda each: str(each.record["created"]), reverse=True)
    return Histories(tuple(newest), {}), in_one_line(
        f"Jobs of Ray cluster {cluster}, as its head lists them now: they end with the head.{unread}"
    )


def log(target: Mapping[str, Any], run: Run) -> bytes:
    """The log of a submitted job. Raises RemoteJobError."""
    with _jobs(target) as jobs:
        return jobs.log(run.record["id"]).encode()


def errors() -> tuple[type[Exception], ...]:
    """Those of the functions here."""
    from components.cml.client import CmlError
    from components.remote_job.jobs import RemoteJobError

    return CmlError, RemoteJobError


def _jobs(target: Mapping[str, Any]) -> closing[Jobs]:
    from components.remote_job.jobs import Jobs

    return closing(Jobs(target))


def _records(cluster: str, jobs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    now, redact = time.time(), Redaction(**redaction())
    for each in jobs:
        try:
            found = listed(each, now)
            yield {**facts(found, redact), **_of_now(cluster, found)}
        except (ValueError, KeyError, TypeError):
            continue


def _of_now(cluster: str, found: Listed) -> dict[str, Any]:
    missing = [SHARED] if found.job["type"] == SUBMISSION else [SHARED, OF_A_DRIVER]
    return {"id": found.id, "namespace": cluster, "onCluster": cluster, "attempts": [], "missing": missing}
