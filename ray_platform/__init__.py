"""Ray on Kubernetes in another Pulumi program: `RayPlatform("ray", StackSettings(...))` (docs/package.md).

The wheel also has the parts that this package is made of, with the names that they have in the project: the states of
stacks have the paths of their classes.
"""

from ray_platform import _parts as _parts  # first: it reports a folder that would replace one of the parts

# isort: split
from components.operator.settings import OperatorSettings
from components.ray_cluster.settings import HeadSettings, RayClusterSettings, WorkerGroupSettings, WorkersSettings
from core.nodes import NodePool
from ray_platform.component import RayPlatform, RayPlatformArgs, load
from stacks.commands.cml.clusters import CmlCluster
from stacks.settings import KubernetesSettings, StackSettings, TenantSettings

__all__ = [
    "CmlCluster",
    "HeadSettings",
    "KubernetesSettings",
    "NodePool",
    "OperatorSettings",
    "RayClusterSettings",
    "RayPlatform",
    "RayPlatformArgs",
    "StackSettings",
    "TenantSettings",
    "WorkerGroupSettings",
    "WorkersSettings",
    "load",
]
