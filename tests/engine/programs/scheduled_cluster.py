"""A RayCluster that Volcano would schedule."""

import pulumi
import pulumi_kubernetes

from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.manifests import Scheduling
from components.ray_cluster.rules import valid

config = pulumi.Config()
RayCluster(
    "training",
    RayClusterArgs(
        valid(
            {
                "name": "training",
                "rayVersion": "2.60.0",
                "image": "rayproject/ray:2.60.0",
                "readyTimeout": "1s",
                "networkTopology": {"mode": config.require("mode")},
            }
        ),
        (),
        config.require("namespace"),
        scheduling=Scheduling("volcano", config.require("queue")),
    ),
    pulumi.ResourceOptions(providers=[pulumi_kubernetes.Provider("cluster", cluster_identifier="test")]),
)
