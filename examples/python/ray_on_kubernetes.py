"""The stack of Pulumi.dev.yaml as a part of a Pulumi program of your own."""

import pulumi

from ray_platform import (
    NodePool,
    OperatorSettings,
    RayClusterSettings,
    RayPlatform,
    StackSettings,
    TenantSettings,
    WorkersSettings,
)

TRAINING = RayClusterSettings(
    name="training",
    ray_version="2.60.0",
    image="rayproject/ray:2.60.0",
    workers=(WorkersSettings(pool="a100"),),  # 1, 2, 4 and 8 GPUs are derived
    idle_timeout="5m",
)

platform = RayPlatform(
    "ray",
    StackSettings(
        operator=OperatorSettings(version="1.6.2"),
        nodes=(NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB"),),
        tenants=(TenantSettings(name="team-a", allow_delete=True, clusters=(TRAINING,)),),
    ),
)

pulumi.export("dashboard", platform.clusters["team-a/training"]["dashboardUrl"])
