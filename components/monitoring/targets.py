"""What Prometheus scrapes: the pods and Services, their ports, and the labels that their metrics get."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from components.monitoring.metrics import Job
from components.network.manifests import HEAD_METRICS_PORTS, OPERATOR
from components.ray_cluster.pods import CLUSTER_LABEL, GROUP_LABEL, NODE_TYPE_LABEL
from components.redis.connection import SELECTOR as REDIS
from components.redis_gateway.manifests import NAME as GATEWAY


@dataclass(frozen=True)
class Monitored:
    """What a stack has for Prometheus. Fields that are None or empty: it does not have it."""

    operator: str
    """The operator's namespace."""

    watched: tuple[str, ...]
    """The namespaces of RayClusters; empty: all."""

    gateway: bool
    redis: tuple[str, ...]
    """The namespaces of Redis with an exporter."""

    quorum: bool
    """Whether each Redis has three nodes."""

    volcano: str | None
    kueue: str | None

    issuers: bool
    """Whether cert-manager issues certificates of RayClusters or of Redis."""

    kubernetes: bool
    """Whether it has clusters on Kubernetes, and not on Cloudera ML alone."""

    cml: Mapping[tuple[str, str], int]
    """How many workers a cluster on Cloudera ML should have, by its project and name; 0: it is suspended."""

    prices: Mapping[float, tuple[str, ...]]
    """Prices of a GPU for an hour, each with the worker groups that have it."""

    @property
    def parts(self) -> frozenset[str]:
        """What it has, as alerts name it."""
        has = {
            "ray": True,
            "kuberay": self.kubernetes,
            "cml": bool(self.cml),
            "gateway": self.gateway,
            "redis": bool(self.redis),
            "redis-quorum": bool(self.redis) and self.quorum,
            "volcano": self.volcano is not None,
            "kueue": self.kueue is not None,
            "cert-manager": self.issuers,
        }
        return frozenset(part for part, present in has.items() if present)


@dataclass(frozen=True)
class Relabelling:
    """A step that sets the label `target`, to `value` if it is set, else to the labels `source`; only where these match
    `pattern`, if it is set. `value` may have groups of `pattern`: `$1`, which is the default."""

    target: str
    source: tuple[str, ...] = ()
    pattern: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Target:
    """Pods, or the pods of Services, with metrics."""

    job: Job
    labels: Mapping[str, str]
    """Labels of the pods or Services."""

    port: str
    """Name of the port in the pod or the Service."""

    namespaces: tuple[str, ...]
    """Their namespaces; empty: all."""

    of: Literal["pod", "service"] = "pod"

    secured: bool = False
    """Whether it answers over TLS, with a certificate that it has issued itself, and only to accounts of Kubernetes
    that may get `/metrics`."""

    labelled: tuple[Relabelling, ...] = ()
    """Steps on the labels of the target."""

    metrics_labelled: tuple[Relabelling, ...] = ()
    """Steps on the labels of each metric."""


def meta_label(of: Literal["pod", "service"], label: str) -> str:
    """Prometheus' name of a label of a pod or a Service before its target has labels of its own."""
    return f"__meta_kubernetes_{of}_label_{_metric_label(label)}"


def _metric_label(label: str) -> str:
    """A label of Kubernetes as a label of metrics, with an underscore for each other character."""
    return re.sub("[^a-zA-Z0-9_]", "_", label)


_OF_RAY_PODS = tuple(
    Relabelling(_metric_label(label), (meta_label("pod", label),))
    for label in (CLUSTER_LABEL, NODE_TYPE_LABEL, GROUP_LABEL)
)
"""`ray_io_cluster`, `ray_io_node_type` and `ray_io_group`, as Prometheus writes the labels of pods. Some metrics of Ray
have no such label (github.com/ray-project/kuberay/issues/2524)."""

_OF_OBJECTS = (
    # The operator's metrics have the namespace of their object, which would be that of the operator's pod.
    Relabelling("namespace", ("exported_namespace",), "(.+)"),
    Relabelling("ray_io_cluster", ("__name__", "name"), "kuberay_cluster_.+;(.+)"),
)

_KUEUE = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/component": "metrics-service"}
"""Labels of the Service of Kueue's metrics (kueue 0.19, config/default/kustomization.yaml)."""


def targets(monitored: Monitored) -> Iterator[Target]:
    watched = monitored.watched
    for job, node_type in ((Job.HEAD, "head"), (Job.WORKER, "worker")):
        yield Target(job, {NODE_TYPE_LABEL: node_type}, "metrics", watched, labelled=_OF_RAY_PODS)
    for job, port in zip((Job.AUTOSCALER, Job.DASHBOARD), HEAD_METRICS_PORTS, strict=True):
        # Pods do not name this port. Where the port of metrics is, there it is too.
        moved = Relabelling("__address__", ("__address__",), r"(.+):\d+", f"$1:{port}")
        yield Target(job, {NODE_TYPE_LABEL: "head"}, "metrics", watched, labelled=(*_OF_RAY_PODS, moved))
    if monitored.gateway:
        yield Target(Job.GATEWAY, {NODE_TYPE_LABEL: "head"}, GATEWAY, watched, labelled=_OF_RAY_PODS)
    if monitored.redis:
        yield Target(Job.REDIS, REDIS, "metrics", monitored.redis)
    yield Target(Job.OPERATOR, OPERATOR, "http", (monitored.operator,), metrics_labelled=_OF_OBJECTS)
    if monitored.volcano:
        for job, app in ((Job.VOLCANO_SCHEDULER, "volcano-scheduler"), (Job.VOLCANO_CONTROLLERS, "volcano-controller")):
            yield Target(job, {"app": app}, "metrics", (monitored.volcano,), of="service")
    if monitored.kueue:
        yield Target(Job.KUEUE, _KUEUE, "https", (monitored.kueue,), of="service", secured=True)
