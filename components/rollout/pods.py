"""The pods of a RayCluster, and their state as Ray in its head reports it."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from components import payloads
from components.cluster import Cluster, ClusterUnreachableError, ConflictError
from components.ray_cluster.pods import CLUSTER_LABEL, GROUP_LABEL, NODE_TYPE_LABEL

_SECONDS = 60
"""The import of Ray takes seconds on a busy head."""

Pod = Mapping[str, Any]
"""As the API server returns it."""


class UnknownRayError(Exception):
    """Ray in the head does not answer; the message has the reason."""


class Pods:
    """The pods of one RayCluster. All methods raise ClusterUnreachableError if the API server does not answer."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        """`name`: of the RayCluster."""
        self._cluster = cluster
        self.namespace, self.name = namespace, name

    def all(self) -> list[Pod]:
        """Head and workers, including those that are being deleted."""
        listed = self._cluster.list("v1", "pods", self.namespace, labels=f"{CLUSTER_LABEL}={self.name}")
        return [pod for pod in listed or () if kind(pod) in ("head", "worker")]

    def delete(self, pod: Pod, *, unchanged: bool = False) -> None:
        """Deletes this pod, but not another pod of the same name. `unchanged`: only if it has not changed since."""
        metadata = pod["metadata"]
        only = {key: metadata[key] for key in ("uid", *(["resourceVersion"] if unchanged else []))}
        with suppress(ConflictError):
            self._cluster.delete("v1", "pods", self.namespace, metadata["name"], {"preconditions": only})

    def ask(self, pods: Iterable[Pod], drain: Mapping[str, float | None]) -> dict[str, Any]:
        """The output of rollout_in_head.py with `drain` as its argument. `pods` contains the head.

        Raises UnknownRayError.
        """
        return self.run_in_head(pods, payloads.text("rollout_in_head"), json.dumps({"drain": drain}))

    def run_in_head(self, pods: Iterable[Pod], script: str, *arguments: str) -> dict[str, Any]:
        """Runs a script with the Python of the head; returns the JSON in its last line. `pods` contains the head.

        Raises UnknownRayError.
        """
        heads = [pod for pod in pods if kind(pod) == "head" and not leaves(pod)]
        if not heads:
            raise UnknownRayError("its head does not exist")
        name = heads[0]["metadata"]["name"]
        container = heads[0]["spec"]["containers"][0]["name"]
        try:
            output, wrong = self._cluster.exec(
                self.namespace, name, container, ["python", "-c", script, *arguments], seconds=_SECONDS
            )
            reported: dict[str, Any] = json.loads(output.splitlines()[-1])
        except ClusterUnreachableError as error:
            raise UnknownRayError(str(error)) from None
        except (IndexError, ValueError):
            last = next((line for line in reversed(wrong.splitlines()) if line.strip()), "it printed nothing")
            raise UnknownRayError(f"Ray in its pod {name} does not answer: {last}") from None
        return reported


def kind(pod: Pod) -> str | None:
    """`head` or `worker`; other values are those of clean-up pods."""
    return (pod["metadata"].get("labels") or {}).get(NODE_TYPE_LABEL)


def group(pod: Pod) -> str | None:
    return (pod["metadata"].get("labels") or {}).get(GROUP_LABEL)


def leaves(pod: Pod) -> bool:
    """Whether it is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def started(pod: Pod) -> bool:
    """Whether Ray may run in it. A pod is Pending as long as one of its containers waits, whatever the others do."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    return status.get("phase") == "Running" or any("running" in (each.get("state") or {}) for each in containers)


def named(pods: Iterable[Pod]) -> str:
    return ", ".join(sorted(pod["metadata"]["name"] for pod in pods))
