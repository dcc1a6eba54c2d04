"""How monitoring is provisioned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pulumi

from components.cluster import Cluster, ClusterUnreachableError
from components.install import object_name
from components.kubernetes import KubernetesObject
from components.kubernetes_cluster import KubernetesCluster
from components.monitoring.manifests import OPERATOR_API, Body

_GROUP = OPERATOR_API.partition("/")[0]


@dataclass(frozen=True)
class MonitoringArgs:
    """Arguments of Monitoring."""

    bodies: Sequence[Body]
    """The objects, as `manifests.monitoring_objects` renders them."""

    cluster: Cluster = field(default_factory=KubernetesCluster)


class Monitoring(pulumi.ComponentResource):
    """The objects that an existing Prometheus reads: what it scrapes, what it records, and what it alerts to.

    Raises pulumi.RunError, in previews too, if the cluster lacks a kind of the Prometheus operator that is used.
    """

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Monitoring", name, None, opts)
        # Children do not inherit the dependencies of a component.
        below = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        try:
            check_kinds(args.cluster, {body["kind"] for body in args.bodies if body["apiVersion"] == OPERATOR_API})
        except (MissingKindsError, ClusterUnreachableError) as error:
            raise pulumi.RunError(str(error)) from error
        for body in args.bodies:
            KubernetesObject(f"{name}-{object_name(body)}", body, below)
        self.register_outputs({})


class MissingKindsError(Exception):
    """The cluster lacks kinds of the Prometheus operator; the text names them, and the setting."""


def check_kinds(cluster: Cluster, kinds: Iterable[str]) -> None:
    """Raises MissingKindsError unless the cluster has these kinds of the Prometheus operator; ClusterUnreachableError
    if it cannot be read."""
    definitions = [f"{kind.lower()}s.{_GROUP}" for kind in sorted(kinds)]
    missing = [name for name in definitions if cluster.get(*_DEFINITIONS, None, name) is None]
    if missing:
        raise MissingKindsError(
            f"monitoring.mode is prometheusOperator, and the cluster lacks {', '.join(missing)}: install the "
            "Prometheus operator first, or set monitoring.mode to scrapeConfig"
        )


_DEFINITIONS = ("apiextensions.k8s.io/v1", "customresourcedefinitions")
