"""Asks heads, and records the jobs that they list and that have no RayJob: those that `ray job submit` has sent, and
drivers that have connected.

Asked are RayClusters of the namespace that belong to no RayJob and to no RayService, and external clusters.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .api import ApiServer
from .configured import LOOK_SECONDS, READ_SECONDS, TRIES_SECONDS, Configured
from .heads import Head, read_secret, token_of
from .in_ray import OF_A_DRIVER, SHARED, SUBMISSION, Listed, facts, listed
from .record import seconds, text
from .redaction import Redaction
from .store import Store

Body = Any

_MOST_AT_ONCE = 200
"""Jobs of a cluster that are recorded when its head is asked; the next time, further ones."""

_MOST_RECORDS = 5000
"""Of a cluster. People's code decides how many jobs a head lists."""

_HEAD_SECONDS = 4
"""Within which a whole answer has to come. RayJobs wait meanwhile, and their clusters may be gone soon."""

_DASHBOARD = 8265
"""Port of the head's dashboard, unless its container names another (kuberay/ports.py)."""

_OF_OTHERS = ("RayJob", "RayService")


@dataclass(frozen=True)
class _Place:
    """A cluster that is asked."""

    name: str
    uid: str
    """Of the RayCluster; of an external cluster its address."""

    image: str | None
    head: Callable[[], Head] | None
    """Its head; None if it is not ready."""

    prefix: str = ""
    """Of the IDs of the jobs that are recorded."""

    others: tuple[str, ...] = ()
    """Of those that are not, although they have the prefix."""

    @property
    def title(self) -> str:
        """For problems."""
        return f"cluster {self.name}"


@dataclass
class Clusters:
    """Asks the clusters in turn."""

    api: ApiServer
    store: Store
    configured: Configured
    report: Callable[[str, str], None]
    """Reports what does not work now, by what it is about; the empty text ends a report."""

    titles: frozenset[str] = frozenset()
    """Those that reports may be about."""

    _next: dict[str, float] = field(default_factory=dict)
    """When a head is asked again, by the UID of its cluster."""

    _ended: dict[str, float] = field(default_factory=dict)
    """When the end of a job was first seen, by the name of its record."""

    def look(self, now: float) -> None:
        """Asks the heads whose time has come, for a few seconds; the next look goes on with the others. Raises OSError
        or ValueError if the API server cannot be read."""
        places = list(self._places()) if self.configured.read_heads else []
        self.titles = frozenset(each.title for each in places)
        uids, until = {each.uid for each in places}, time.monotonic() + LOOK_SECONDS
        open_in = {record["clusterUid"] for _, record in self._open()}
        for uid in open_in - uids:
            self._lose(uid, (), "the cluster was removed or suspended, or is not asked any more", now)
        self._next = {uid: moment for uid, moment in self._next.items() if uid in uids}
        self._ended = {name: moment for name, moment in self._ended.items() if name in self.store.records}
        for place in sorted(places, key=lambda each: self._next.get(each.uid, 0.0)):
            if place.head is None:
                left = "has no head that is ready: its jobs are shown as they were last seen"
                self.report(place.title, left if place.uid in open_in else "")
            elif self._next.get(place.uid, 0.0) <= now and time.monotonic() < until:
                self._ask(place, place.head, now, until)

    def _ask(self, place: _Place, head_of: Callable[[], Head], now: float, until: float) -> None:
        try:
            head = head_of()
            jobs = head.jobs()
        except Exception as error:  # a head answers what people's code wants
            self._next[place.uid] = now + TRIES_SECONDS
            self.report(place.title, f"cannot be asked for its jobs: {error}")
            return
        self._next[place.uid] = now + READ_SECONDS
        found, strange = self._listed(place, jobs, now)
        why = "its head does not list the job any more: it was deleted there, or the head has started again"
        self._lose(place.uid, found, why, now)
        due = [name for name, each in found.items() if self._is_due(name, each, now)]
        if any(name not in self.store.records for name in due):
            # Read after the head has answered: a RayJob has its job's ID before Ray has the job.
            of_ray_jobs = self._of_ray_jobs()
            due = [name for name in due if (place.name, found[name].id) not in of_ray_jobs]
        kept, problems = sum(each.get("clusterUid") == place.uid for each in self.store.records.values()), []
        new = [name for name in due if name not in self.store.records]
        if beyond := set(new[max(_MOST_RECORDS - kept, 0) :]):
            problems.append(f"has more than {_MOST_RECORDS} recorded jobs: new ones are not recorded")
            due = [name for name in due if name not in beyond]
        # Ended jobs first, whose cluster may be gone soon; then that which was read longest ago.
        order = sorted(due, key=lambda each: (found[each].ended is None, self._recorded(each)))
        for name in order[:_MOST_AT_ONCE]:
            try:
                self._update(name, found[name], place, head, now)
            except OSError as error:
                problems.append(f"has jobs that cannot be recorded: {error}")
                break
            except Exception:
                strange += 1
            if time.monotonic() > until:
                self._next[place.uid] = now
                break
        if strange:
            problems.append(f"lists {strange} jobs that cannot be read")
        self.report(place.title, "; ".join(problems))

    def _listed(self, place: _Place, jobs: list[Body], now: float) -> tuple[dict[str, Listed], int]:
        """Jobs by the names of their records, and how many cannot be read."""
        found, strange = {}, 0
        for job in jobs:
            try:
                each = listed(job, now)
            except Exception:
                strange += 1
                continue
            if each.id.startswith(place.prefix) and not each.id.startswith(place.others):
                identity = hashlib.sha256(f"{place.uid} {each.identity}".encode()).hexdigest()[:32]
                found[f"{place.name}.{identity}"] = each
        return found, strange

    def _is_due(self, name: str, found: Listed, now: float) -> bool:
        record = self.store.records.get(name)
        if record is not None:
            return not record.get("complete") or bool(record.get("lastSeen"))
        return found.ended is None or seconds(found.ended) >= now - self.configured.retention_days * 24 * 3600

    def _recorded(self, name: str) -> str:
        return str(self.store.records.get(name, {}).get("recorded", ""))

    def _update(self, name: str, found: Listed, place: _Place, head: Head, now: float) -> None:
        """Writes the record of a job, and its log. Raises OSError if the volume cannot be written."""
        before, missing = self.store.records.get(name, {}), [SHARED]
        attempt = {"jobId": found.id, "cluster": place.name, "log": None}
        record = {"pods": {}, "events": {}, "attempts": [attempt], **before}
        record.update(facts(found, Redaction(**self.configured.redaction)))
        record.update(
            namespace=self.configured.namespace, clusterUid=place.uid, onCluster=place.name, image=place.image
        )
        ended, read = found.ended is not None, True
        tried = ended and now - self._ended.setdefault(name, now) >= TRIES_SECONDS
        if record["submissionMode"] != SUBMISSION:
            missing.append(OF_A_DRIVER)
        else:
            try:
                log = head.log(found.id, self.configured.log_bytes)
            except Exception as error:
                read = False
                missing.append(f"the log, or its end, which cannot be read: {error}")
            else:
                self.store.write_log(name, 1, log.text)
                kept = {"bytes": len(log.text), "cut": log.cut, "grows": not ended}
                record["attempts"] = [{**attempt, "log": kept}]
        record.update(missing=missing, complete=ended and (read or tried), recorded=text(now))
        self.store.write(name, record)

    def _lose(self, uid: str, found: Container[str], why: str, now: float) -> None:
        """Ends the records of a cluster's jobs that are not listed any more."""
        for name, record in self._open():
            if record["clusterUid"] == uid and name not in found:
                seen = {} if record["ended"] else {"lastSeen": record["recorded"]}
                missing = [*record["missing"], f"{'its end' if seen else 'the end of its log'}, because {why}"]
                self.store.write(name, {**record, **seen, "missing": missing, "complete": True, "recorded": text(now)})

    def _open(self) -> Iterator[tuple[str, Body]]:
        for name, record in list(self.store.records.items()):
            if "clusterUid" in record and not record.get("complete"):
                yield name, record

    def _of_ray_jobs(self) -> set[tuple[str, str]]:
        """Clusters and IDs of jobs that KubeRay has submitted for RayJobs, also for those that are gone."""
        recorded = (record for record in self.store.records.values() if "clusterUid" not in record)
        found = {(each["cluster"], each["jobId"]) for record in recorded for each in record.get("attempts") or ()}
        for job in self._list("rayjobs"):
            status = job.get("status") or {}
            found.add((str(status.get("rayClusterName")), str(status.get("jobId"))))
        return found

    def _places(self) -> Iterator[_Place]:
        heads = {}
        for pod in self.api.list(
            f"/api/v1/namespaces/{self.configured.namespace}/pods", "labelSelector=ray.io%2Fnode-type%3Dhead"
        ):
            labels = pod["metadata"].get("labels") or {}
            if labels.get("ray.io/node-type") == "head" and _is_ready(pod):
                heads[labels.get("ray.io/cluster")] = pod
        for cluster in self._list("rayclusters"):
            metadata = cluster["metadata"]
            owners = [each.get("kind") for each in metadata.get("ownerReferences") or ()]
            if not cluster["spec"].get("suspend") and not any(each in _OF_OTHERS for each in owners):
                yield self._of_kubernetes(cluster, heads.get(metadata["name"]))
        for each in self.configured.external:
            # Others use these clusters, too: their jobs are not the tenant's (components/payloads/external_cluster.py).
            prefix = f"{self.configured.namespace}-"
            head = partial(self._external, each)
            yield _Place(each["name"], each["address"], None, head, prefix, tuple(each["others"]))

    def _of_kubernetes(self, cluster: Body, pod: Body | None) -> _Place:
        name, spec, namespace = cluster["metadata"]["name"], cluster["spec"], self.configured.namespace

        def head() -> Head:
            return Head(_dashboard(pod), token_of(self.api, namespace, name, spec), seconds=_HEAD_SECONDS)

        # The CRD admits an empty list.
        containers = spec["headGroupSpec"]["template"]["spec"].get("containers") or [{}]
        return _Place(name, cluster["metadata"]["uid"], containers[0].get("image"), head if pod else None)

    def _external(self, cluster: Mapping[str, Any]) -> Head:
        def secret(place: Body) -> str | None:
            return read_secret(self.api, self.configured.namespace, place["name"], place["key"]) if place else None

        return Head(cluster["address"], secret(cluster["token"]), secret(cluster["authority"]), _HEAD_SECONDS)

    def _list(self, plural: str) -> Iterator[Body]:
        return self.api.list(f"/apis/ray.io/v1/namespaces/{self.configured.namespace}/{plural}", "")


def _is_ready(pod: Body) -> bool:
    status = pod.get("status") or {}
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    return ready and bool(status.get("podIP")) and not pod["metadata"].get("deletionTimestamp")


def _dashboard(pod: Body) -> str:
    """Address of a head's dashboard."""
    ports = pod["spec"]["containers"][0].get("ports") or ()
    port = next((each["containerPort"] for each in ports if each.get("name") == "dashboard"), _DASHBOARD)
    address = pod["status"]["podIP"]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
