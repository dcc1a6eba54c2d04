"""Settings of how an edit is applied to running pods of a RayCluster."""

from typing import Literal

from core.types import Settings, Timeout

Strategy = Literal["onIdle", "drain", "immediate", "none"]


class UpdatesSettings(Settings):
    """How an edit of pods, such as of image, env or resources, is applied to running pods. New pods have it at once."""

    strategy: Strategy = "onIdle"
    """`onIdle`: each `up` replaces the idle workers and leaves the busy ones. `drain`: old workers take no new work,
    and `up` replaces each once it is idle, at the latest after `limit`. `immediate`: all old pods are replaced, also
    the head, and their work is lost. `none`: running pods stay. The workers of a worker group that leaves the stack
    file are removed in the same way before the group is deleted."""

    limit: Timeout = "30m"
    """With `drain`: time for a worker to finish its work; afterwards it is deleted."""
