"""The guard of a queue."""

import pulumi

from components.dynamic.guards import QueueGuard, QueueGuardArgs
from kuberay.schedulers import QUEUE_LABEL

QueueGuard("guard", QueueGuardArgs(pulumi.Config().require("queue"), QUEUE_LABEL))
