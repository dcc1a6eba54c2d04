"""The guard of a queue."""

import pulumi

from components.queues.admission import QUEUE_LABEL
from components.queues.guard import QueueGuard, QueueGuardArgs

QueueGuard("guard", QueueGuardArgs(pulumi.Config().require("queue"), QUEUE_LABEL))
