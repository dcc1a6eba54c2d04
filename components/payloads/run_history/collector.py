"""Looks at a namespace's RayJobs, and keeps a record of each until its retention ends; `clusters.py` looks at what runs
on clusters without a RayJob.

It has no state but the records. After a pause it goes on with them, and with the RayJobs that still exist.
"""

from __future__ import annotations

import copy
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import PORT
from .api import ApiServer
from .clusters import Clusters
from .configured import LOOK_SECONDS, READ_SECONDS, TRIES_SECONDS, Configured
from .heads import Head, token_of
from .log import MODES_WITH_A_SUBMITTER, Log, log_of_submitter
from .record import (
    event_of,
    facts,
    gpu_hours,
    has_ended,
    is_about,
    keeps_cluster,
    merged_events,
    note_attempt,
    note_pods,
    ray_event_of,
    seconds,
    text,
)
from .redaction import Redaction
from .server import serve
from .store import Store, folder_of

Body = Any


@dataclass
class _Reading:
    """When the log and events of a run were last read."""

    last: float = 0.0
    ended: float | None = None
    """When its end was first seen."""

    done: bool = False
    """Whether nothing is left to be read."""

    written: float = 0.0


@dataclass
class Collector:
    """Looks, and writes what it finds."""

    api: ApiServer
    store: Store
    configured: Configured
    problems: dict[str, str] = field(default_factory=dict)
    """What does not work now, by what it is about."""

    _readings: dict[str, _Reading] = field(default_factory=dict)
    _events: list[tuple[Body, str, Body]] | None = None
    """Those of the namespace, once they are read in a look: what each is about, its ID, and what is kept of it."""

    clusters: Clusters = field(init=False)

    def __post_init__(self) -> None:
        self.clusters = Clusters(self.api, self.store, self.configured, self._report)

    def look(self, now: float) -> None:
        """One look at all RayJobs. What fails is reported, and tried again at the next."""
        try:
            self._look(now)
        except Exception as error:  # one look must not end the program
            self._report("RayJobs", f"cannot be read: {error!r}")
        else:
            self._report("RayJobs", "")

    def _look(self, now: float) -> None:
        existing, pods, self._events = set(), None, None
        for job in self._list("/apis/ray.io/v1", "rayjobs"):
            name = folder_of(job)
            existing.add(name)
            if self.store.records.get(name, {}).get("complete") or self._is_forgotten(job, now):
                continue
            if pods is None:
                pods = list(self._list("/api/v1", "pods", "labelSelector=ray.io%2Fcluster"))
            self._guarded(name, lambda job=job, pods=pods: self._update(job, pods, now))
        for name, record in list(self.store.records.items()):
            if name not in existing and not record.get("complete") and "clusterUid" not in record:
                self._guarded(name, lambda name=name, record=record: self._gone(name, record, now))
            elif record.get("complete") and seconds(record["recorded"]) < self._oldest(now):
                self._guarded(name, lambda name=name: self.store.remove(name))
        self._guarded("RayClusters", lambda: self.clusters.look(now))
        known = {"RayJobs", "RayClusters", *self.clusters.titles, *existing, *self.store.records}
        for name in {*self._readings, *self.problems} - known:
            self._readings.pop(name, None)
            self.problems.pop(name, None)
        self._events = None

    def _update(self, job: Body, pods: list[Body], now: float) -> None:
        name = folder_of(job)
        before = self.store.records.get(name, {})
        record = copy.deepcopy(before)
        reading = self._readings.setdefault(name, _Reading(done=before.get("read", False)))
        record.update(facts(job, Redaction(**self.configured.redaction)))
        note_attempt(record, job)
        note_pods(record, pods, now)
        record["gpuHours"] = gpu_hours(record, keeps_cluster(job))
        ended = has_ended(job)
        if ended and reading.ended is None:
            reading.ended = now
        begins = record["deploymentStatus"] != before.get("deploymentStatus")
        if not reading.done and (ended or begins or now - reading.last >= READ_SECONDS):
            reading.last, missing = now, []
            # Before, there is no log; between two attempts, a head that goes would only be waited for.
            if ended or record["deploymentStatus"] == "Running":
                missing = [*self._read_log(name, record, job, pods), *self._read_head(record, job)]
            self._read_events(record)
            record["missing"] = missing
            reading.done = reading.ended is not None and (not missing or now - reading.ended >= TRIES_SECONDS)
            record["read"] = reading.done
        stays = keeps_cluster(job) or record["onCluster"] is not None
        record["complete"] = reading.done and (stays or not any(each["holds"] for each in record["pods"].values()))
        # The pods' times change at each look, and the volume may be slow.
        news = any(record.get(key) != before.get(key) for key in ("status", "deploymentStatus", "complete", "missing"))
        if news or now - reading.written >= READ_SECONDS:
            reading.written = now
            self.store.write(name, {**record, "recorded": text(now)})
        else:
            self.store.records[name] = {**record, "recorded": text(now)}

    def _gone(self, name: str, record: Body, now: float) -> None:
        """The RayJob was deleted before its record was complete."""
        record = copy.deepcopy(record)
        note_pods(record, (), now)
        record.update(complete=True, deleted=True, gpuHours=gpu_hours(record, keeps=False), recorded=text(now))
        self.store.write(name, record)

    def _read_log(self, name: str, record: Body, job: Body, pods: list[Body]) -> Iterator[str]:
        """Reads the log of the present attempt; why it is missing, if it is."""
        if not (attempts := record["attempts"]):
            return
        try:
            log = self._log(record, job, pods)
        except Exception as error:
            if attempts[-1]["log"] is None:
                yield f"the log cannot be read: {error}"
            elif attempts[-1]["log"]["grows"]:
                yield f"the end of the log cannot be read: {error}"
            return
        self.store.write_log(name, len(attempts), log.text)
        attempts[-1]["log"] = {"bytes": len(log.text), "cut": log.cut, "grows": log.grows}
        if log.grows:
            # Ray's status, by which KubeRay ends a RayJob, is ahead of the lines that the container prints.
            yield "the end of the log may be missing: it was still being written"

    def _log(self, record: Body, job: Body, pods: list[Body]) -> Log:
        if record["submissionMode"] in MODES_WITH_A_SUBMITTER:
            return log_of_submitter(self.api, self.configured.namespace, record, pods, self.configured.log_bytes)
        if not self.configured.read_heads:
            raise LookupError(f"in {record['submissionMode']} only the head has it, and readHeads is not set")
        log = self._head(job).log(str(job["status"]["jobId"]), self.configured.log_bytes)
        return replace(log, grows=not has_ended(job))

    def _read_head(self, record: Body, job: Body) -> Iterator[str]:
        """Reads what the head knows; why that is missing, if it is."""
        status = job.get("status") or {}
        if not self.configured.read_heads or not status.get("dashboardURL"):
            return
        redact = Redaction(**self.configured.redaction)
        try:
            head = self._head(job)
            events = {str(each["event_id"]): ray_event_of(each, redact) for each in head.events()}
            record["rayEvents"] = merged_events(record.get("rayEvents", {}), events)
            if status.get("jobStatus"):
                in_ray = head.job(str(status["jobId"]))
                record["exitCode"] = in_ray.get("driver_exit_code")
                record["errorType"] = in_ray.get("error_type")
        except Exception as error:  # a head answers what people's code wants
            yield f"the head cannot be read: {error}"

    def _head(self, job: Body) -> Head:
        namespace, status = self.configured.namespace, job["status"]
        spec, name = job["spec"].get("rayClusterSpec"), str(status["rayClusterName"])
        if spec is None:
            spec = self.api.read(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{name}")["spec"]
        return Head(f"http://{status['dashboardURL']}", token_of(self.api, namespace, name, spec))

    def _read_events(self, record: Body) -> None:
        """Kubernetes deletes events after an hour, so they are read while the job runs, too."""
        names = {record["name"], *(each["cluster"] for each in record["attempts"])}
        names |= {each["name"] for each in record["pods"].values()}
        if self._events is None:
            redact = Redaction(**self.configured.redaction)
            listed = self._list("/api/v1", "events")
            self._events = [
                (each["involvedObject"], str(each["metadata"]["uid"]), event_of(each, redact)) for each in listed
            ]
        found = {uid: event for about, uid, event in self._events if is_about(about, names, record["name"])}
        record["events"] = merged_events(record.get("events", {}), found)

    def _list(self, group: str, plural: str, query: str = "") -> Iterator[Body]:
        return self.api.list(f"{group}/namespaces/{self.configured.namespace}/{plural}", query)

    def _is_forgotten(self, job: Body, now: float) -> bool:
        """Whether the retention of an ended job is over, though its RayJob still exists."""
        end = (job.get("status") or {}).get("endTime") or job["metadata"]["creationTimestamp"]
        return has_ended(job) and seconds(end) < self._oldest(now)

    def _oldest(self, now: float) -> float:
        return now - self.configured.retention_days * 24 * 3600

    def _guarded(self, name: str, work: Any) -> None:
        try:
            work()
        except Exception as error:  # nor must one run keep the others from being recorded
            self._report(name, f"cannot be recorded: {error!r}")
        else:
            self._report(name, "")

    def _report(self, about: str, problem: str) -> None:
        if problem == self.problems.get(about, ""):
            return
        sys.stdout.write(f"{about} {problem or 'is recorded again'}\n")
        sys.stdout.flush()
        self.problems.pop(about, None)
        if problem:
            self.problems[about] = problem


def run(argument: Body) -> None:
    """Looks again and again, and answers, until the pod ends."""
    # The first process of a container ignores SIGTERM unless it handles it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configured = Configured(**argument)
    store = Store(Path(configured.folder) / configured.namespace)
    collector = Collector(ApiServer(), store, configured)
    serve(store, lambda: [f"{about} {problem}" for about, problem in sorted(collector.problems.items())], PORT)
    while True:
        collector.look(time.time())
        time.sleep(LOOK_SECONDS)
