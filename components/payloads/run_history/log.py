"""The log of a job: what the container that submits it has printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .api import ApiServer
from .record import JOB_NAME_LABEL

Body = Any

MODES_WITH_A_SUBMITTER = ("K8sJobMode", "SidecarMode")
"""Of a RayJob: a pod of a Job submits it, or a container in the head's pod (rayjob_types.go: JobSubmissionMode)."""

_SIDECAR = "ray-job-submitter"
"""KubeRay's name of that container (constant.go: SubmitterContainerName)."""

_MOST_LINES = 100_000


@dataclass(frozen=True)
class Log:
    """The end of a log, from a whole line on."""

    text: bytes
    cut: bool
    """Whether its beginning is missing."""

    grows: bool = False
    """Whether it was still being written: its container, or the job of a head, had not ended before it was read."""


def log_of_submitter(api: ApiServer, namespace: str, record: Body, pods: Iterable[Body], size: int) -> Log:
    """The last bytes of the log of the present attempt; `pods`: those of RayClusters.

    Raises LookupError if the pod does not exist, OSError or ValueError if its log cannot be read.
    """
    of_pods = f"/api/v1/namespaces/{namespace}/pods"
    if record["submissionMode"] == "SidecarMode":
        cluster = record["attempts"][-1]["cluster"]
        pod = next((each for each in pods if _is_head(each, cluster)), None)
        if pod is None:
            raise LookupError(f"RayCluster {cluster} has no head")
        container = _SIDECAR
    else:
        label = quote(f"{JOB_NAME_LABEL}={record['name']}")
        submitters = list(api.list(of_pods, f"labelSelector={label}"))
        if not submitters:
            raise LookupError("no pod has submitted the job")
        pod = max(submitters, key=lambda each: str(each["metadata"]["creationTimestamp"]))
        container = pod["spec"]["containers"][0]["name"]
    path = f"{of_pods}/{pod['metadata']['name']}/log?container={container}&tailLines={_MOST_LINES}"
    log = api.read_end(path, size)
    cut = len(log) >= size
    return Log(log.partition(b"\n")[2] if cut else log, cut, grows=not _has_ended(pod, container))


def _is_head(pod: Body, cluster: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return labels.get("ray.io/cluster") == cluster and labels.get("ray.io/node-type") == "head"


def _has_ended(pod: Body, container: str) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(each["name"] == container and "terminated" in (each.get("state") or {}) for each in statuses)
