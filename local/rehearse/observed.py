"""A snapshot of a rehearsal cluster, from bodies of the API server. Pure functions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from components.ray_job.settings import JOB_LABEL
from components.ray_service.settings import SERVICE_LABEL
from core.body import ReadOnlyBody
from core.nodes import gpu_names
from local.nodes import POOL_LABEL

HEAD = "head"
"""The plan's name of the head's group. KubeRay's label has `headgroup` (ray-operator/controllers/ray/utils/constant.go:
RayNodeHeadGroupLabelValue)."""

OWNER_LABELS = (JOB_LABEL, SERVICE_LABEL)
"""Labels with the name of the RayJob or RayService that has a RayCluster, whose own name KubeRay generates."""

_REFUSED = re.compile(r"is forbidden|denied the request|exceeded quota|violates PodSecurity|ValidatingAdmissionPolicy")
"""The API server's messages when quota, Pod Security, policies or webhooks refuse an object (kubernetes,
apiserver/pkg/admission/errors.go: NewForbidden; plugin/webhook/errors/statuserror.go;
plugin/policy/validating/plugin.go)."""

_POD_NAME = re.compile(r"(pods) \"[^\"]+\"")
"""The part of a refusal that differs between pods."""


@dataclass(frozen=True)
class Pod:
    """A pod of a RayCluster or of Redis."""

    name: str

    owner: str
    """`<namespace>/<name>` of the RayCluster, of the RayJob or RayService that has it, or of the StatefulSet."""

    group: str
    """The worker group, `head`, or the StatefulSet's name."""

    gpus: int

    pool: str | None
    """Pool of its node, empty for a node of no pool; None if it is on no node."""

    running: bool

    waits: str = ""
    """Why it is on no node, as the scheduler reports it; empty if the scheduler has reported nothing."""


@dataclass(frozen=True)
class Cluster:
    """A RayCluster."""

    name: str
    """`<namespace>/<name>`, with the name of the RayJob or RayService that has it if there is one, as in a plan."""

    ready: bool

    seconds: float | None
    """From its creation until KubeRay reported it as provisioned; in whole seconds, as Kubernetes writes times."""


@dataclass(frozen=True)
class Refusal:
    """An object that admission refused."""

    what: str
    """The object that could not be created, or whose pods could not."""

    message: str
    """The API server's message."""


@dataclass(frozen=True)
class Observed:
    """A snapshot of the rehearsal cluster."""

    clusters: tuple[Cluster, ...]
    pods: tuple[Pod, ...]
    refusals: tuple[Refusal, ...]

    def gpus_by_pool(self) -> Counter[str]:
        """GPUs of pods that are on nodes, by pool."""
        return _sums((pod.pool or "", pod.gpus) for pod in self.placed())

    def gpus_by_owner(self) -> Counter[str]:
        """GPUs of pods that are on nodes, by RayCluster."""
        return _sums((pod.owner, pod.gpus) for pod in self.placed())

    def placed(self) -> list[Pod]:
        """Pods that are on nodes."""
        return [pod for pod in self.pods if pod.pool is not None]

    def waiting(self) -> list[Pod]:
        """Pods that are on no node."""
        return [pod for pod in self.pods if pod.pool is None]


def _sums(amounts: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, amount in amounts:
        found[key] += amount
    return found


def observed(
    clusters: Sequence[ReadOnlyBody],
    pods: Sequence[ReadOnlyBody],
    nodes: Sequence[ReadOnlyBody],
    events: Sequence[ReadOnlyBody],
    groups: Sequence[ReadOnlyBody],
) -> Observed:
    """The snapshot from lists of RayClusters, pods, nodes, events and PodGroups."""
    pools = {node["metadata"]["name"]: node["metadata"]["labels"][POOL_LABEL] for node in nodes}
    gangs = {_name(group): group for group in groups}
    found = (pod_of(pod, pools, gangs) for pod in pods)
    return Observed(
        clusters=tuple(_cluster(each) for each in clusters),
        pods=tuple(pod for pod in found if pod),
        refusals=tuple(dict.fromkeys([*_failures(clusters), *_events(events)])),
    )


def pod_of(body: ReadOnlyBody, pools: Mapping[str, str], gangs: Mapping[str, ReadOnlyBody]) -> Pod | None:
    """A pod of a RayCluster or StatefulSet that has not ended; None for any other. `gangs`: PodGroups, by name."""
    metadata, status = body["metadata"], body.get("status") or {}
    labels, namespace = metadata.get("labels") or {}, metadata["namespace"]
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
    if owner is None or owner["kind"] not in ("RayCluster", "StatefulSet") or metadata.get("deletionTimestamp"):
        return None
    group = owner["name"]
    if owner["kind"] == "RayCluster":
        group = HEAD if labels.get("ray.io/node-type") == "head" else labels.get("ray.io/group", "")
    node = body["spec"].get("nodeName")
    return Pod(
        name=metadata["name"],
        owner=f"{namespace}/{_owner(labels) or owner['name']}",
        group=group,
        gpus=sum(_gpus(container) for container in body["spec"]["containers"]),
        pool=pools.get(node, "") if node else None,
        running=status.get("phase") == "Running",
        waits="" if node else _why(body, gangs),
    )


def _owner(labels: Mapping[str, str]) -> str | None:
    """Name of the RayJob or RayService that an object belongs to."""
    return next((labels[label] for label in OWNER_LABELS if label in labels), None)


def _why(body: ReadOnlyBody, gangs: Mapping[str, ReadOnlyBody]) -> str:
    for condition in (body.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False" and condition.get("message"):
            return str(condition["message"])
    metadata = body["metadata"]
    gang = gangs.get(
        f"{metadata['namespace']}/{(metadata.get('annotations') or {}).get('scheduling.k8s.io/group-name')}"
    )
    conditions = ((gang or {}).get("status") or {}).get("conditions") or ()
    return next((str(each["message"]) for each in reversed(conditions) if each.get("message")), "")


def _gpus(container: ReadOnlyBody) -> int:
    requests = (container.get("resources") or {}).get("requests") or {}
    return sum(int(requests[name]) for name in gpu_names(requests))


def _cluster(body: ReadOnlyBody) -> Cluster:
    status = body.get("status") or {}
    provisioned = _condition(body, "RayClusterProvisioned")
    since = provisioned["lastTransitionTime"] if provisioned and provisioned["status"] == "True" else None
    created = body["metadata"]["creationTimestamp"]
    seconds = (datetime.fromisoformat(since) - datetime.fromisoformat(created)).total_seconds() if since else None
    labels = body["metadata"].get("labels") or {}
    name = f"{body['metadata']['namespace']}/{owner}" if (owner := _owner(labels)) else _name(body)
    return Cluster(name, status.get("state") == "ready", seconds)


def _failures(clusters: Sequence[ReadOnlyBody]) -> Iterator[Refusal]:
    """Refusals of RayClusters whose pods the API server refuses at the moment."""
    for body in clusters:
        if refused(message := failure(body)):
            yield Refusal(f"RayCluster {_name(body)}", without_pod_name(message))


def _events(events: Sequence[ReadOnlyBody]) -> Iterator[Refusal]:
    for event in events:
        about = event["involvedObject"]
        # A RayCluster itself reports current refusals.
        if (
            event.get("type") == "Warning"
            and about["kind"] != "RayCluster"
            and _REFUSED.search(event.get("message", ""))
        ):
            yield Refusal(
                f"{about['kind']} {about.get('namespace', '')}/{about['name']}", without_pod_name(event["message"])
            )


def failure(cluster: ReadOnlyBody) -> str:
    """Why KubeRay could not create the pods of a RayCluster at its last attempt; empty if it could."""
    condition = _condition(cluster, "ReplicaFailure")
    return str(condition.get("message", "")) if condition and condition["status"] == "True" else ""


def refused(message: str) -> bool:
    """Whether a message reports a refusal by admission."""
    return bool(_REFUSED.search(message))


def without_pod_name(message: str) -> str:
    """A refusal without the name of the pod, so that refusals with the same reason are equal."""
    return _POD_NAME.sub(r"\1", " ".join(message.split()))


def _condition(body: ReadOnlyBody, kind: str) -> ReadOnlyBody | None:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def _name(body: ReadOnlyBody) -> str:
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"
