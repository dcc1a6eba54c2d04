"""Settings of the plugins of Volcano's scheduler, which select nodes and order queues and jobs. Their arguments are
those of pkg/scheduler/plugins of Volcano 1.14.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict

from core.nodes import GPU_RESOURCE
from core.types import DnsLabel, LabelKey, Settings

Weight = Annotated[int, Strict(), Field(ge=0, le=1000)]
"""Weight of a score; 0: it does not count."""


class GangSettings(Settings):
    """Pods of a PodGroup start when its `minMember` can start, or none does."""

    reclaim_minimum: bool = False
    """True: a queue can also reclaim its deserved share from whole gangs. Default: only from pods that a gang does not
    need, so that no gang is broken up."""


class OvercommitSettings(Settings):
    """How many PodGroups the scheduler considers before there is room for them."""

    factor: Annotated[float, Field(ge=1, le=100)] = 1.2
    """Factor by which the scheduler multiplies the cluster's resources for this."""


class NodeOrderSettings(Settings):
    """Weights of the node scores of Kubernetes' own rules."""

    least_requested: Weight = 0
    """For nodes with little in use. Default: none, because it is the opposite of `binpack`; Volcano's own is 1."""

    most_requested: Weight = 0
    """For nodes with much CPU and memory in use."""

    balanced_resource: Weight = 1
    """For nodes whose CPU and memory are used alike."""

    node_affinity: Weight = 2
    """For preferred node affinity."""

    pod_affinity: Weight = 2
    """For preferred pod affinity."""

    taint_toleration: Weight = 3
    """For nodes without PreferNoSchedule taints that pods do not tolerate."""

    image_locality: Weight = 1
    """For nodes that have the image."""

    pod_topology_spread: Weight = 2
    """For the pods' topology spread constraints."""


class BinpackSettings(Settings):
    """Fills used nodes first, so that whole nodes stay free for pods that need them."""

    weight: Weight = 10
    """Weight of this score relative to those of `nodeOrder`."""

    cpu: Weight = 1
    """Weight of CPUs in the score."""

    memory: Weight = 1
    """Weight of memory in the score."""

    resources: dict[LabelKey, Weight] = Field(default_factory=lambda: {GPU_RESOURCE: 10})
    """Weights of other resources in the score, by their names. Only resources that a pod requests count."""


def _switched(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    return value


Gang = Annotated[GangSettings | None, BeforeValidator(_switched, json_schema_input_type=GangSettings | bool)]
Overcommit = Annotated[
    OvercommitSettings | None, BeforeValidator(_switched, json_schema_input_type=OvercommitSettings | bool)
]
NodeOrder = Annotated[
    NodeOrderSettings | None, BeforeValidator(_switched, json_schema_input_type=NodeOrderSettings | bool)
]
Binpack = Annotated[BinpackSettings | None, BeforeValidator(_switched, json_schema_input_type=BinpackSettings | bool)]


class PluginsSettings(Settings):
    """The scheduler's plugins. Each may be `false`: it is not used."""

    priority: bool = True
    """Jobs with a higher PriorityClass start first."""

    gang: Gang = GangSettings()
    """Gangs start whole or not at all."""

    conformance: bool = True
    """Pods of Kubernetes itself are never evicted."""

    overcommit: Overcommit = None
    """PodGroups are considered only if there will be room for them soon. Default: off, because a queue could not
    reclaim its deserved share in a full cluster, and KubeRay creates pods without waiting for it."""

    drf: bool = True
    """The job with the smallest share in a queue starts first. `false`: jobs of equal priority start in the order of
    creation."""

    predicates: bool = True
    """Pods start only on nodes that Kubernetes' own scheduler would allow."""

    node_order: NodeOrder = NodeOrderSettings()
    """Kubernetes' own preferences among nodes."""

    binpack: Binpack = BinpackSettings()
    """Nodes are filled one after the other."""

    network_topology_aware: bool = False
    """Gangs are placed close together in the network, by HyperNodes; RayClusters with `networkTopology` need it."""


class ExtraPlugin(Settings):
    """A plugin of Volcano without its own setting here. Its arguments are passed to the scheduler unchanged."""

    name: DnsLabel
    """Its name, `sla` for example. The scheduler ends if it does not have the plugin."""

    arguments: dict[str, Any] = Field(default_factory=dict)
    """Its arguments, `{sla-waiting-time: 1h}` for example."""
