"""Settings of Volcano, and its supported releases."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator
from pydantic.alias_generators import to_camel

from components.operator.settings import ComputeResources
from components.volcano.plugins import ExtraPlugin, PluginsSettings
from core.problems import Problem, Problems
from core.types import DnsLabel, DnsSubdomain, NonEmptyText, Settings, Version
from core.versions import release_of

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


class VolcanoSchedulerSettings(Settings):
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
    """Provisioners of StorageClasses that are no CSI drivers of the nodes: `rancher.io/local-path`. A pod with a claim
    of such a class that is not bound yet stays Pending otherwise: Volcano counts the claim as a volume of a CSI driver
    (pkg/scheduler/cache/event_handlers.go: getPodCSIVolumes), and no node has that driver."""

    resources: ComputeResources | None = None
    """Resources of its pod. Default: requests of 50m and 256Mi, without limits."""

    @model_validator(mode="after")
    def _is_valid(self) -> Self:
        if problems := [*self._actions(), *self._plugins()]:
            raise Problems(problems)
        return self

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


class VolcanoSettings(Settings):
    """Volcano: gangs of pods that start whole or not at all, out of queues that share the cluster.

    With `install: existing` Volcano is not changed, so only its `namespace` and its `queueShares` can be set.
    """

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

    @model_validator(mode="after")
    def _is_valid(self) -> Self:
        if problems := [*self._unsupported(), *self._not_with_existing()]:
            raise Problems(problems)
        return self

    def _unsupported(self) -> Iterator[Problem]:
        if release_of(self.version) not in RELEASES:
            message = f"version {self.version!r} is not supported: set it to {SUPPORTED}"
            yield Problem(("version",), self.version, message, "volcano-version")

    def _not_with_existing(self) -> Iterator[Problem]:
        if self.install == "manifests":
            return
        message = "install: existing changes nothing of Volcano: remove this key, or set install: manifests"
        for field in sorted(self.model_fields_set - {"install", "namespace", "scheduler"}):
            yield Problem((to_camel(field),), getattr(self, field), message, "existing-volcano")
        for field in sorted(self.scheduler.model_fields_set - {"queue_shares"}):
            value = getattr(self.scheduler, field)
            yield Problem(("scheduler", to_camel(field)), value, message, "existing-volcano")
