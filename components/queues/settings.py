"""What a stack file may say about queues and what serves them."""

from ..types import Settings
from ..volcano.settings import VolcanoSettings


class SchedulerSettings(Settings):
    """What serves the queues."""

    volcano: VolcanoSettings | None = None
    """Volcano, in place of Kubernetes' scheduler for Ray's pods: gangs, queues, bin packing."""
