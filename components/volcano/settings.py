"""What a stack file may say about Volcano."""

from typing import Literal

from ..types import Settings, Version


class VolcanoSchedulerSettings(Settings):
    """The scheduler: what it does, by which rules."""

    queue_shares: Literal["proportion", "capacity"] = "capacity"
    """How queues share the cluster. `capacity`: each deserves what it says, and queues may have a parent; `weight` says
    nothing then. `proportion`: by `weight`; `deserved` and `parent` say nothing then."""


class VolcanoSettings(Settings):
    """Volcano: gangs of pods that start whole or not at all, out of queues that share the cluster."""

    version: Version = "1.14.1"
    """Volcano's release, without the leading v."""

    install: Literal["manifests", "existing"] = "manifests"
    """`manifests`: this program installs and upgrades it. `existing`: it is there; its version is checked."""

    scheduler: VolcanoSchedulerSettings = VolcanoSchedulerSettings()
