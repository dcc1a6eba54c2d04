"""Runs on a cluster outside Kubernetes, as its head lists them now. Of one on Cloudera ML its project keeps records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from components.payloads.cml_application import record_id
from components.payloads.run_history.in_ray import OF_A_DRIVER, SHARED, SUBMISSION, Listed, facts, listed
from components.payloads.run_history.record import text
from components.payloads.run_history.redaction import Redaction
from components.run_history.manifests import redaction
from core.problems import in_one_line
from stacks.commands.runs.history import Histories, Run
from stacks.commands.status.cml import address_of_head, inputs_of, kept, kept_log
from stacks.settings import StackSettings

if TYPE_CHECKING:
    from components.cml.manifests import Inputs
    from components.remote_job.jobs import Jobs


@dataclass(frozen=True)
class Outside:
    """A cluster outside Kubernetes."""

    name: str
    head: Mapping[str, Any] | None
    """How its head is reached; None if there is none that runs."""
    inputs: Inputs | None = None
    """Of a cluster on Cloudera ML."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """The jobs that its project has records of, by their IDs."""
    problem: str = ""
    """Why these cannot be read."""


def cluster_of(settings: StackSettings, stack: str, name: str) -> Outside | None:
    """A cluster of `cml.clusters` or of the stack's own `externalClusters`; None if there is none of that name.
    `stack`: the stack's name. Raises CmlError."""
    from components.cml.client import CmlError
    from components.remote_job.manifests import target, target_on_cml

    if on_cml := inputs_of(settings.cml, stack, name):
        found: dict[str, Any] = {}
        problem = ""
        try:
            found = kept(on_cml)
        except CmlError as error:
            problem = f" What its project has recorded cannot be read: {error}."
        try:
            head = target_on_cml(name, *address_of_head(on_cml), on_cml["caFile"])
        except CmlError:
            if not found:
                raise
            head = None
        return Outside(name, head, on_cml, found, problem)
    return next((Outside(name, target(each)) for each in settings.external_clusters if each.name == name), None)


def read(cluster: Outside) -> tuple[Histories, str]:
    """The jobs that a head lists and those that are kept, the newest first, and what a reader has to know of them.
    Raises RemoteJobError if there are none of either."""
    from components.remote_job.jobs import RemoteJobError

    listed_now: dict[str, Any] = {}
    why = "no head runs now"
    if cluster.head:
        try:
            with _jobs(cluster.head) as jobs:
                listed_now = {record_id({"start_time": None, **each}): each for each in jobs.listed()}
            why = ""
        except RemoteJobError as error:
            if not cluster.kept:
                raise
            why = str(error)
    known = {**cluster.kept, **listed_now}
    runs = [Run(cluster.name, each) for each in _records(cluster.name, known, listed_now)]
    unread = f" {len(known) - len(runs)} of them cannot be read." if len(runs) < len(known) else ""
    newest = sorted(runs, key=lambda each: str(each.record["created"]), reverse=True)
    if why:
        source = f"as its project has recorded them: {why}."
    elif cluster.inputs:
        source = "as its head lists them now, and as its project has recorded them before."
    else:
        source = "as its head lists them now: they end with the head."
    note = f"Jobs of Ray cluster {cluster.name}, {source}{unread}{cluster.problem}"
    return Histories(tuple(newest), {}), in_one_line(note)


def log(cluster: Outside, run: Run) -> bytes:
    """The log of a submitted job. Raises RemoteJobError, or CmlError."""
    from components.remote_job.jobs import RemoteJobError

    if cluster.head and run.record["kept"] is None:
        with _jobs(cluster.head) as jobs:
            return jobs.log(run.record["id"]).encode()
    found = kept_log(cluster.inputs, run.record["kept"]) if cluster.inputs else None
    if found is None:
        raise RemoteJobError(f"the log of {run.title} was not kept")
    return found


def errors() -> tuple[type[Exception], ...]:
    """Those of the functions here."""
    from components.cml.client import CmlError
    from components.remote_job.jobs import RemoteJobError

    return CmlError, RemoteJobError


def _jobs(target: Mapping[str, Any]) -> closing[Jobs]:
    from components.remote_job.jobs import Jobs

    return closing(Jobs(target))


def _records(
    cluster: str, known: Mapping[str, dict[str, Any]], listed_now: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    now, redact = time.time(), Redaction(**redaction())
    for record, each in known.items():
        try:
            found = listed(each, now)
            gone = None if record in listed_now else record
            seen = text(each["seen"]) if gone and not found.ended else None
            yield {**facts(found, redact), **_of_now(cluster, found), "kept": gone, "lastSeen": seen}
        except (ValueError, KeyError, TypeError):
            continue


def _of_now(cluster: str, found: Listed) -> dict[str, Any]:
    missing = [SHARED] if found.job["type"] == SUBMISSION else [SHARED, OF_A_DRIVER]
    return {"id": found.id, "namespace": cluster, "onCluster": cluster, "attempts": [], "missing": missing}
