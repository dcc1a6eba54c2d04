"""What a stack file may say about how an edit reaches the pods of a RayCluster that run already."""

from typing import Literal

from core.types import Duration, Settings

Strategy = Literal["onIdle", "drain", "immediate", "none"]


class UpdatesSettings(Settings):
    """How an edit of pods, such as of image, env or resources, reaches those that run. New pods have it at once."""

    strategy: Strategy = "onIdle"
    """`onIdle`: each `up` replaces the workers on which nothing runs, and leaves the busy ones. `drain`: old workers
    take no new work, and `up` replaces each once it is idle, at the latest after `limit`. `immediate`: all old pods are
    replaced, the head too, and what runs on them is lost. `none`: pods that run stay. A worker group that leaves the
    stack file loses its workers the same way before it goes."""

    limit: Duration = "30m"
    """With `drain`: so long a worker may go on with what it runs; then it is ended."""
