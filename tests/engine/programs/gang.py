"""A gang whose queue is kept up to date."""

import pulumi

from components.dynamic.pod_group import PodGroup, PodGroupArgs

config = pulumi.Config()
PodGroup(
    "gang",
    PodGroupArgs(config.require("namespace"), "training", config.get("queue"), config.get("priority")),
)
