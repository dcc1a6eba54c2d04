"""Settings of Volcano and of the plugins of its scheduler, which select nodes and order queues and jobs, and its
supported releases. Arguments of plugins are those of pkg/scheduler/plugins of Volcano 1.14."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, Strict
from pydantic.alias_generators import to_camel

from components.operator.settings import ComputeResources
from core.nodes import GPU_RESOURCE
from core.problems import Problem
from core.types import CheckedSettings, DnsLabel, DnsSubdomain, LabelKey, NonEmptyText, Settings, Version, switched
from core.versions import release_of

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
    """Weights of other resources in the score, by their names, for example of the gpuResource of pools. Only resources
    that a pod requests count."""


Gang = Annotated[GangSettings | None, BeforeValidator(switched, json_schema_input_type=GangSettings | bool)]
Overcommit = Annotated[
    OvercommitSettings | None, BeforeValidator(switched, json_schema_input_type=OvercommitSettings | bool)
]
NodeOrder = Annotated[
    NodeOrderSettings | None, BeforeValidator(switched, json_schema_input_type=NodeOrderSettings | bool)
]
Binpack = Annotated[BinpackSettings | None, BeforeValidator(switched, json_schema_input_type=BinpackSettings | bool)]


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


RELEASES = ("1.14",)
"""Minor versions whose manifest and scheduler configuration this package supports."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)


NAMESPACE = "volcano-system"
"""The namespace in Volcano's manifest."""

SCHEDULER_REQUESTS = ComputeResources(cpu="50m", memory="256Mi")
CONTROLLERS_REQUESTS = ComputeResources(cpu="25m", memory="128Mi")
WEBHOOK_REQUESTS = ComputeResources(cpu="25m", memory="128Mi")
"""Default requests of the programs: a multiple of their usage on a rehearsal cluster of a few nodes (64Mi, 57Mi and
46Mi), and little CPU, so that they fit on a node of two cores beside Ray and Redis. Volcano's own manifest and chart
(installer/helm/chart/volcano/values.yaml) set none."""

Action = Literal["enqueue", "allocate", "backfill", "reclaim", "preempt"]
"""An action of the scheduler in each round (pkg/scheduler/actions)."""

_NEEDS_STARVING = ("reclaim", "preempt")

_OWN_SETTINGS = {
    **{to_camel(name).lower(): f"plugins.{to_camel(name)}" for name in PluginsSettings.model_fields},
    "nodeorder": "plugins.nodeOrder",
    "network-topology-aware": "plugins.networkTopologyAware",
    "proportion": "queueShares",
    "capacity": "queueShares",
}
"""Plugins with their own setting, by Volcano's names."""


class VolcanoSchedulerSettings(CheckedSettings):
    """The scheduler: its actions and plugins."""

    actions: tuple[Action, ...] = ("enqueue", "allocate", "backfill", "reclaim")
    """Its actions in each round, in this order. Without `reclaim` a queue gets its deserved share only when jobs of
    other queues end. With `preempt` a job can evict a job of lower priority in its queue."""

    queue_shares: Literal["proportion", "capacity"] = "capacity"
    """How queues share the cluster. `capacity`: by `deserved`, and queues may have a parent; `weight` has no effect.
    `proportion`: by `weight`; `deserved` and `parent` have no effect."""

    plugins: PluginsSettings = PluginsSettings()
    """Its plugins."""

    extra_plugins: tuple[ExtraPlugin, ...] = ()
    """Other plugins."""

    ignored_provisioners: tuple[NonEmptyText, ...] = ()
    """Provisioners of StorageClasses that are not CSI drivers of the nodes: `rancher.io/local-path`. A pod with a claim
    of such a class that is not bound yet stays Pending otherwise: Volcano counts the claim as a volume of a CSI driver
    (pkg/scheduler/cache/event_handlers.go: getPodCSIVolumes), and no node has that driver."""

    resources: ComputeResources | None = None
    """Resources of its pod. Default: requests of 50m and 256Mi, without limits."""

    def problems(self) -> list[Problem]:
        return [*self._actions(), *self._plugins()]

    def _actions(self) -> Iterator[Problem]:
        for index, action in enumerate(self.actions):
            if action in self.actions[:index]:
                message = f"{action!r} is named already: name each action once"
                yield Problem(("actions", index), action, message, "volcano-actions")
            elif action in _NEEDS_STARVING and not (self.plugins.gang or self.plugins.priority):
                # pkg/scheduler/framework/session_plugins.go, JobStarving: false if no plugin defines starving jobs.
                message = f"{action!r} does nothing without plugin gang or priority: enable one, or remove the action"
                yield Problem(("actions", index), action, message, "volcano-actions")
        if "allocate" not in self.actions:
            message = "without 'allocate' no pod is ever placed: add it"
            yield Problem(("actions",), list(self.actions), message, "volcano-actions")

    def _plugins(self) -> Iterator[Problem]:
        named: set[str] = set()
        for index, plugin in enumerate(self.extra_plugins):
            path = ("extraPlugins", index, "name")
            if where := _OWN_SETTINGS.get(plugin.name):
                message = f"{plugin.name!r} is set by {where}: set it there, and remove it here"
                yield Problem(path, plugin.name, message, "volcano-plugins")
            elif plugin.name in named:
                message = f"{plugin.name!r} is named already: name each plugin once"
                yield Problem(path, plugin.name, message, "volcano-plugins")
            named.add(plugin.name)


class ControllersSettings(Settings):
    """The controllers, which update the status of queues and PodGroups."""

    resources: ComputeResources | None = None
    """Resources of their pod. Default: requests of 25m and 128Mi, without limits."""


class WebhookSettings(Settings):
    """The webhook, which refuses invalid queues, PodGroups and jobs. It does not apply to pods."""

    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """The action while it does not answer. `Ignore`: objects are admitted without a check. `Fail`: no queue, no
    PodGroup and so no RayCluster can be created."""

    timeout_seconds: Annotated[int, Strict(), Field(ge=1, le=30)] = 5
    """Time for which the API server waits for an answer."""

    replicas: Annotated[int, Strict(), Field(ge=1, le=5)] = 1
    """Its pods."""

    resources: ComputeResources | None = None
    """Resources of each of its pods. Default: requests of 25m and 128Mi, without limits."""


class VolcanoSettings(CheckedSettings):
    """Volcano: gangs of pods that start whole or not at all, out of queues that share the cluster.

    With `install: existing` Volcano is not changed, so only its `namespace` and its `queueShares` can be set.
    """

    CONFIG_MAP: ClassVar[str] = "volcano-scheduler-configmap"
    """Name of the ConfigMap with its configuration."""

    version: Version = "1.14.1"
    """Volcano's release, without the leading v: 1.14.x."""

    install: Literal["manifests", "existing"] = "manifests"
    """`manifests`: this program installs and upgrades it. `existing`: it is installed already; its version is
    checked."""

    location: str | None = Field(default=None, min_length=1)
    """Manifest to install from: a file or a URL. Default: Volcano's `installer/volcano-development.yaml` on GitHub at
    the tag of `version`."""

    namespace: DnsLabel = NAMESPACE
    """Namespace of Volcano. `install: manifests` creates it."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in Volcano's namespace to pull the images with."""

    metrics: bool = True
    """Scheduler and controllers have metrics for Prometheus, with a Service for each."""

    scheduler: VolcanoSchedulerSettings = VolcanoSchedulerSettings()
    controllers: ControllersSettings = ControllersSettings()
    webhook: WebhookSettings = WebhookSettings()

    @property
    def manifest(self) -> str:
        """The location of the manifest."""
        return self.location or (
            f"https://raw.githubusercontent.com/volcano-sh/volcano/v{self.version}/installer/volcano-development.yaml"
        )

    def problems(self) -> Iterator[Problem]:
        if release_of(self.version) not in RELEASES:
            message = f"version {self.version!r} is not supported: set it to {SUPPORTED}"
            yield Problem(("version",), self.version, message, "volcano-version")
        if self.install == "manifests":
            return
        message = "install: existing changes nothing of Volcano: remove this key, or set install: manifests"
        for field in sorted(self.model_fields_set - {"install", "namespace", "scheduler"}):
            yield Problem((to_camel(field),), getattr(self, field), message, "existing-volcano")
        for field in sorted(self.scheduler.model_fields_set - {"queue_shares"}):
            value = getattr(self.scheduler, field)
            yield Problem(("scheduler", to_camel(field)), value, message, "existing-volcano")
