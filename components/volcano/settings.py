"""What a stack file may say about Volcano."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator
from pydantic.alias_generators import to_camel

from core.problems import Problem, Problems
from core.types import DnsLabel, DnsSubdomain, Settings, Version
from core.versions import release_of

from ..operator.settings import ComputeResources
from .plugins import ExtraPlugin, PluginsSettings
from .supported import RELEASES, SUPPORTED

NAMESPACE = "volcano-system"
"""Where Volcano's manifest has everything."""

SCHEDULER_REQUESTS = ComputeResources(cpu="50m", memory="256Mi")
CONTROLLERS_REQUESTS = ComputeResources(cpu="25m", memory="128Mi")
WEBHOOK_REQUESTS = ComputeResources(cpu="25m", memory="128Mi")
"""What the programs ask for where nothing is said: some times what they took on a rehearsal cluster of a few nodes,
64Mi, 57Mi and 46Mi, and little CPU, so that they fit a node of two cores beside Ray and Redis. Volcano's own manifest
and chart (installer/helm/chart/volcano/values.yaml) say nothing."""

Action = Literal["enqueue", "allocate", "backfill", "reclaim", "preempt"]
"""What the scheduler does in each of its rounds (pkg/scheduler/actions)."""

_NEEDS_STARVING = ("reclaim", "preempt")

_SAID_ELSEWHERE = {
    **{to_camel(name).lower(): f"plugins.{to_camel(name)}" for name in PluginsSettings.model_fields},
    "nodeorder": "plugins.nodeOrder",
    "network-topology-aware": "plugins.networkTopologyAware",
    "proportion": "queueShares",
    "capacity": "queueShares",
}
"""Plugins that have a setting, by Volcano's names for them."""


class VolcanoSchedulerSettings(Settings):
    """The scheduler: what it does, by which rules."""

    actions: tuple[Action, ...] = ("enqueue", "allocate", "backfill", "reclaim")
    """What it does in each round, in this order. Without `reclaim` a queue waits until others end for what it deserves;
    `preempt` lets a job take the place of one of less priority in its queue."""

    queue_shares: Literal["proportion", "capacity"] = "capacity"
    """How queues share the cluster. `capacity`: each deserves what it says, and queues may have a parent; `weight` says
    nothing then. `proportion`: by `weight`; `deserved` and `parent` say nothing then."""

    plugins: PluginsSettings = PluginsSettings()
    """Its plugins."""

    extra_plugins: tuple[ExtraPlugin, ...] = ()
    """Further plugins."""

    resources: ComputeResources | None = None
    """Of its pod. Default: it asks for 50m and 256Mi, with no limit."""

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if problems := [*self._actions(), *self._plugins()]:
            raise Problems(problems)
        return self

    def _actions(self) -> Iterator[Problem]:
        for index, action in enumerate(self.actions):
            if action in self.actions[:index]:
                message = f"{action!r} is named already: name each action once"
                yield Problem(("actions", index), action, message, "volcano-actions")
            elif action in _NEEDS_STARVING and not (self.plugins.gang or self.plugins.priority):
                # pkg/scheduler/framework/session_plugins.go, JobStarving: false where no plugin says who starves.
                message = f"{action!r} does nothing without plugin gang or priority: enable one, or remove the action"
                yield Problem(("actions", index), action, message, "volcano-actions")
        if "allocate" not in self.actions:
            message = "without 'allocate' no pod is ever placed: add it"
            yield Problem(("actions",), list(self.actions), message, "volcano-actions")

    def _plugins(self) -> Iterator[Problem]:
        named: set[str] = set()
        for index, plugin in enumerate(self.extra_plugins):
            path = ("extraPlugins", index, "name")
            if where := _SAID_ELSEWHERE.get(plugin.name):
                message = f"{plugin.name!r} is set by {where}: set it there, and remove it here"
                yield Problem(path, plugin.name, message, "volcano-plugins")
            elif plugin.name in named:
                message = f"{plugin.name!r} is named already: name each plugin once"
                yield Problem(path, plugin.name, message, "volcano-plugins")
            named.add(plugin.name)


class ControllersSettings(Settings):
    """The controllers: what keeps the state of queues and PodGroups."""

    resources: ComputeResources | None = None
    """Of their pod. Default: it asks for 25m and 128Mi, with no limit."""


class WebhookSettings(Settings):
    """The webhook, which refuses queues, PodGroups and jobs that cannot be. Pods do not pass it."""

    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """What happens while it does not answer. `Ignore`: objects are taken unchecked. `Fail`: no queue, no PodGroup and
    so no RayCluster can be made."""

    timeout_seconds: Annotated[int, Strict(), Field(ge=1, le=30)] = 5
    """So long the API server waits for an answer."""

    replicas: Annotated[int, Strict(), Field(ge=1, le=5)] = 1
    """Its pods."""

    resources: ComputeResources | None = None
    """Of each of its pods. Default: it asks for 25m and 128Mi, with no limit."""


class VolcanoSettings(Settings):
    """Volcano: gangs of pods that start whole or not at all, out of queues that share the cluster.

    With `install: existing` nothing of Volcano is changed, so only where it is may be said, and its `queueShares`.
    """

    version: Version = "1.14.1"
    """Volcano's release, without the leading v: 1.14.x."""

    install: Literal["manifests", "existing"] = "manifests"
    """`manifests`: this program installs and upgrades it. `existing`: it is there; its version is checked."""

    location: str | None = Field(default=None, min_length=1)
    """Manifest to install from: a file or a URL. Default: Volcano's `installer/volcano-development.yaml` on GitHub at
    the tag of `version`."""

    namespace: DnsLabel = NAMESPACE
    """Namespace of Volcano. `install: manifests` makes it."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in Volcano's namespace to pull the images with."""

    metrics: bool = True
    """Scheduler and controllers have metrics for Prometheus, with a Service for each."""

    scheduler: VolcanoSchedulerSettings = VolcanoSchedulerSettings()
    controllers: ControllersSettings = ControllersSettings()
    webhook: WebhookSettings = WebhookSettings()

    @property
    def manifest(self) -> str:
        """Where the manifest is."""
        return self.location or (
            f"https://raw.githubusercontent.com/volcano-sh/volcano/v{self.version}/installer/volcano-development.yaml"
        )

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if problems := [*self._unsupported(), *self._not_ours_to_set()]:
            raise Problems(problems)
        return self

    def _unsupported(self) -> Iterator[Problem]:
        if release_of(self.version) not in RELEASES:
            message = f"version {self.version!r} is not supported: set it to {SUPPORTED}"
            yield Problem(("version",), self.version, message, "volcano-version")

    def _not_ours_to_set(self) -> Iterator[Problem]:
        if self.install == "manifests":
            return
        message = "install: existing changes nothing of Volcano: remove this key, or set install: manifests"
        for field in sorted(self.model_fields_set - {"install", "namespace", "scheduler"}):
            yield Problem((to_camel(field),), getattr(self, field), message, "existing-volcano")
        for field in sorted(self.scheduler.model_fields_set - {"queue_shares"}):
            value = getattr(self.scheduler, field)
            yield Problem(("scheduler", to_camel(field)), value, message, "existing-volcano")
