"""What a stack file may say about the plugins of Volcano's scheduler: which nodes and queues pods go to, and in what
order. Their arguments are those of pkg/scheduler/plugins of Volcano 1.14.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict

from core.nodes import GPU_RESOURCE
from core.types import DnsLabel, LabelKey, Settings

Weight = Annotated[int, Strict(), Field(ge=0, le=1000)]
"""How much a score counts beside others; 0: not at all."""


class GangSettings(Settings):
    """Pods of a PodGroup start when its `minMember` can start, or none does."""

    reclaim_minimum: bool = False
    """True: a queue gets back what it deserves from whole gangs, too. Default: only from pods that a gang can do
    without, so that none is broken up."""


class OvercommitSettings(Settings):
    """How many PodGroups the scheduler looks at while there is no room for them yet."""

    factor: Annotated[float, Field(ge=1, le=100)] = 1.2
    """Of the whole cluster's resources, as if it had so many times as much."""


class NodeOrderSettings(Settings):
    """Weights of the scores that nodes get from Kubernetes' own rules."""

    least_requested: Weight = 0
    """For nodes with little in use. Default: none, because it is the opposite of `binpack`; Volcano's own is 1."""

    most_requested: Weight = 0
    """For nodes with much CPU and memory in use."""

    balanced_resource: Weight = 1
    """For nodes whose CPU and memory are used alike."""

    node_affinity: Weight = 2
    """For what pods prefer of nodes."""

    pod_affinity: Weight = 2
    """For what pods prefer of pods beside them."""

    taint_toleration: Weight = 3
    """For nodes without taints that pods would rather not bear."""

    image_locality: Weight = 1
    """For nodes that have the image."""

    pod_topology_spread: Weight = 2
    """For what pods say of how they spread."""


class BinpackSettings(Settings):
    """Fills nodes that are in use before others, so that whole nodes stay free for those who need them."""

    weight: Weight = 10
    """Of this score beside those of `nodeOrder`."""

    cpu: Weight = 1
    """Of CPUs in the score."""

    memory: Weight = 1
    """Of memory in the score."""

    resources: dict[LabelKey, Weight] = Field(default_factory=lambda: {GPU_RESOURCE: 10})
    """Of other resources in the score; by their names. Only what a pod asks for counts for it."""


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
    """The scheduler's plugins. Each may be `false`: it is left out."""

    priority: bool = True
    """Who has a higher PriorityClass goes first."""

    gang: Gang = GangSettings()
    """Gangs start whole or not at all."""

    conformance: bool = True
    """Pods of Kubernetes itself are never evicted."""

    overcommit: Overcommit = None
    """PodGroups are looked at only once there will be room for them soon. Default: off, because a queue would not get
    back what it deserves from a full cluster, and KubeRay makes pods without waiting for it."""

    drf: bool = True
    """Of jobs in a queue, who has the smallest share goes first. Off with `false`, jobs of a priority go in the order
    in which they were made."""

    predicates: bool = True
    """Pods only go where Kubernetes' own scheduler would let them."""

    node_order: NodeOrder = NodeOrderSettings()
    """Kubernetes' own preferences among nodes."""

    binpack: Binpack = BinpackSettings()
    """Nodes are filled one after the other."""

    network_topology_aware: bool = False
    """Gangs are put close together in the network, by HyperNodes; RayClusters with `networkTopology` need it."""


class ExtraPlugin(Settings):
    """A plugin of Volcano that has no setting of its own here; what it says goes to the scheduler as it is."""

    name: DnsLabel
    """Its name, `sla` for example. The scheduler stops at one that it does not have."""

    arguments: dict[str, Any] = Field(default_factory=dict)
    """Its arguments, `{sla-waiting-time: 1h}` for example."""
