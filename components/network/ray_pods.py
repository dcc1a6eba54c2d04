"""The pods of RayClusters, as NetworkPolicies distinguish them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.network.settings import Peer
from components.ray_cluster.manifests import HEAD_PORTS
from components.ray_cluster.pods import CLUSTER_LABEL
from components.redis.connection import RedisConnection

Body = dict[str, Any]


@dataclass(frozen=True)
class RayPods:
    """The pods of one RayCluster, or of all RayClusters that `other_than` does not name."""

    name: str = ""
    """The RayCluster's name; empty with `other_than`."""

    other_than: tuple[str, ...] | None = None
    """RayClusters with their own policies."""

    label: str = CLUSTER_LABEL
    """Label of its pods with its name."""

    unlabelled: tuple[str, ...] = ()
    """With `other_than`: labels of pods that have their own policies, too."""

    ports: Mapping[str, int] = field(default_factory=lambda: dict(HEAD_PORTS))
    """The head's ports by KubeRay's names."""

    serve: Sequence[int] = (HEAD_PORTS["serve"],)
    """Ports of Serve, of head and workers."""

    metrics: Sequence[int] = (HEAD_PORTS["metrics"],)
    """Ports of metrics of head and workers."""

    head_asks_api_server: bool = True
    """Whether the head needs the API server, as its autoscaler does."""

    workers_ask_api_server: bool = False
    """Whether workers need it, too."""

    ingress: bool = False
    """Whether the ingress controller may connect to the dashboard."""

    redis: RedisConnection | None = None
    """The Redis of the head and of the clean-up Job; None: they use none."""

    gateway: bool = False
    """Whether the head's pod has the Redis gateway, with its metrics."""

    programs: Sequence[Mapping[str, str]] = ()
    """Labels of pods of the namespace that ask the dashboard, beside those of Jobs."""

    @property
    def selector(self) -> Body:
        """Selects its pods in the namespace."""
        if self.other_than is None:
            return {"matchLabels": {self.label: self.name}}
        known = {"key": CLUSTER_LABEL, "operator": "NotIn", "values": sorted(self.other_than)}
        some = {"key": CLUSTER_LABEL, "operator": "Exists"}
        return {
            "matchExpressions": [
                some,
                *([known] if self.other_than else []),
                *({"key": label, "operator": "DoesNotExist"} for label in self.unlabelled),
            ]
        }


@dataclass(frozen=True)
class Openings:
    """Peers that may connect to the ports of a tenant's RayClusters."""

    dashboard: Sequence[Peer] = ()
    client: Sequence[Peer] = ()
    serve: Sequence[Peer] = ()
