"""A RayCluster that Volcano would schedule."""

import pulumi
import pulumi_kubernetes

from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.manifests import Scheduling, ray_cluster
from components.ray_cluster.objects import ray_cluster_objects
from components.ray_cluster.rules import valid

config = pulumi.Config()
settings = valid(
    {
        "name": "training",
        "rayVersion": "2.60.0",
        "image": "rayproject/ray:2.60.0",
        "readyTimeout": "1s",
        "networkTopology": {"mode": config.require("mode")},
    }
)
scheduling = Scheduling("volcano", config.require("queue"))
objects = list(ray_cluster_objects(settings, ray_cluster(settings, (), scheduling=scheduling)))
RayCluster(
    "training",
    RayClusterArgs(settings, objects, config.require("namespace"), scheduling=scheduling),
    pulumi.ResourceOptions(providers=[pulumi_kubernetes.Provider("cluster", cluster_identifier="test")]),
)
