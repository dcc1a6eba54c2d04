"""Moves the gang of a RayCluster to the queue of its settings. KubeRay would leave it in its first queue."""

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, UpdateResult

from components.cluster import AMBIENT, ClusterUnreachableError, Connection
from components.dynamic import Provider, Resource
from components.kubernetes_cluster import cluster_of

_KIND = ("scheduling.volcano.sh/v1beta1", "podgroups")

_DEFAULT_QUEUE = "default"
"""The default of the PodGroup's CRD if no queue is set."""


class PodGroupError(Exception):
    """The PodGroup could not be changed; the message has the reason."""


class PodGroupProvider(Provider):
    """Creates nothing: KubeRay does."""

    replacing = ("namespace", "cluster")
    compared = ("queue", "priorityClass")

    def create(self, props: dict[str, Any]) -> CreateResult:
        apply_settings(props)
        return CreateResult(pod_group(props["cluster"]), dict(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        apply_settings(_news)
        return UpdateResult(dict(_news))


def pod_group(cluster: str) -> str:
    """Name of the PodGroup that KubeRay creates for a RayCluster (volcano_scheduler.go: getAppPodGroupName)."""
    return f"ray-{cluster}-pg"


def apply_settings(props: dict[str, Any]) -> None:
    """Sets queue and priority of the PodGroup to those of the settings.

    If the PodGroup does not exist yet, KubeRay creates it with the RayCluster's current labels. Raises PodGroupError.
    """
    namespace, name = props["namespace"], pod_group(props["cluster"])
    desired = {"queue": props.get("queue") or _DEFAULT_QUEUE, "priorityClassName": props.get("priorityClass") or ""}
    try:
        cluster = cluster_of(props)
        live = cluster.get(*_KIND, namespace, name)
        spec = (live or {}).get("spec") or {}
        if live is None or all((spec.get(key) or "") == value for key, value in desired.items()):
            return
        cluster.patch(*_KIND, namespace, name, {"spec": desired})
    except ClusterUnreachableError as error:
        raise PodGroupError(f"PodGroup {namespace}/{name} keeps its queue and priority: {error}") from None


@dataclass(frozen=True)
class PodGroupArgs:
    namespace: pulumi.Input[str]

    cluster: str
    """Name of the RayCluster."""

    queue: str | None
    """None: Volcano's default queue."""

    priority_class: str | None
    """None: the cluster's default PriorityClass, or none."""

    connection: Connection = AMBIENT


class PodGroup(Resource, module="ray-platform", name="PodGroup"):
    """The gang of a RayCluster, which KubeRay creates and Volcano schedules: its queue and its priority.

    KubeRay reads them from the RayCluster's labels when it creates the PodGroup; later it changes only how many start
    together (volcano_scheduler.go: syncPodGroup). This resource changes them in place. Running pods are not affected;
    they count in the new queue from the scheduler's next round on. It depends on the RayCluster, whose labels change
    first.
    """

    def __init__(self, name: str, args: PodGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "namespace": args.namespace,
            "cluster": args.cluster,
            "queue": args.queue,
            "priorityClass": args.priority_class,
            **args.connection.inputs(),
        }
        super().__init__(PodGroupProvider(), name, inputs, opts)
