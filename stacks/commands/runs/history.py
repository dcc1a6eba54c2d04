"""Reads run histories in the live cluster. Only reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.cluster import Cluster, ClusterUnreachableError, NoKubeconfigError
from components.payloads.run_history import PORT
from components.run_history.manifests import POD
from stacks.commands.status.targets import needs_namespace


@dataclass(frozen=True)
class Run:
    namespace: str
    record: Mapping[str, Any]
    """As components/payloads/run_history/record.py writes it, without its pods and events."""

    @property
    def title(self) -> str:
        """For messages: `team-a/finetune-x7k2p`."""
        return f"{self.namespace}/{self.record['name']}"


@dataclass(frozen=True)
class Histories:
    """What the histories of several namespaces have."""

    runs: tuple[Run, ...]
    """The newest first."""

    problems: Mapping[str, list[str]]
    """What a history could not record, by its namespace."""


def read(cluster: Cluster, namespaces: Iterable[str]) -> tuple[Histories, dict[str, str]]:
    """The runs of these namespaces, and why those of others cannot be read, by namespace. Raises NoKubeconfigError."""
    runs: list[Run] = []
    problems, unreadable = {}, {}
    for namespace in namespaces:
        try:
            answer = json.loads(_ask(cluster, namespace, "/runs"))
        except NoKubeconfigError:
            raise
        except ClusterUnreachableError as error:
            unreadable[namespace] = str(error)
            continue
        runs += (Run(namespace, each) for each in answer["runs"])
        if answer["problems"]:
            problems[namespace] = answer["problems"]
    newest = sorted(runs, key=lambda each: str(each.record["created"]), reverse=True)
    return Histories(tuple(newest), problems), unreadable


def on_cluster(histories: Histories, cluster: str) -> Histories:
    """The runs on this cluster: one that they were sent to, or one that KubeRay has made for them."""

    def clusters(record: Mapping[str, Any]) -> list[str | None]:
        return [record.get("onCluster"), *(each["cluster"] for each in record.get("attempts") or ())]

    return replace(histories, runs=tuple(each for each in histories.runs if cluster in clusters(each.record)))


def selected(histories: Histories, name: str) -> Run | None:
    """The newest run of that name, `<namespace>/<name>`, or ID; None if there is none.

    Raises NoSuchTargetError if several namespaces have one.
    """
    named = [each for each in histories.runs if name in (each.record["name"], each.title)]
    # People choose the IDs of jobs that they submit: those neither hide a record's ID nor a RayJob.
    meant = [each for each in histories.runs if each.record["id"] == name]
    meant = meant or [each for each in named if each.record["uid"]] or named
    within = sorted({each.namespace for each in meant})
    if len(within) > 1:
        raise needs_namespace(name, within)
    return next(iter(meant), None)


def whole(cluster: Cluster, run: Run) -> dict[str, Any]:
    """The record with its pods and events. Raises ClusterUnreachableError."""
    return dict(json.loads(_ask(cluster, run.namespace, f"/runs/{run.record['id']}")))


def log(cluster: Cluster, run: Run, attempt: int) -> bytes | None:
    """The log of an attempt, the first is 1; None if there is none. Raises ClusterUnreachableError."""
    return cluster.ask_pod(run.namespace, POD, PORT, f"/runs/{run.record['id']}/log/{attempt}")


def _ask(cluster: Cluster, namespace: str, path: str) -> bytes:
    answer = cluster.ask_pod(namespace, POD, PORT, path)
    if answer is None:
        raise ClusterUnreachableError(f"pod {namespace}/{POD} does not know {path}")
    return answer
