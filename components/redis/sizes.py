"""Resources of a node of Redis."""

from decimal import Decimal

from core.quantities import amount

from ..operator.settings import ComputeResources
from .settings import RedisSettings

SENTINEL = ComputeResources(cpu="100m", memory="64Mi")
"""A Sentinel uses 7 MiB, and must answer even if Redis beside it does not."""

_CPU = (100, 10)
_MEMORY = (256, 64)
"""Millicores and MiB: of a node without clusters, and for each cluster. The tables of a RayCluster are some MiB. Most
of that is data of its jobs (functions, runtime environments up to 16 MiB)."""

_DATA = Decimal("0.6")
"""Share of a node's memory for data. The rest is for copies during a rewrite of the AOF, for replicas that lag behind,
and for connections."""

_LAG = Decimal("0.15")
"""Share of a node's memory for writes that wait for a replica. Beyond it the replica is disconnected and has to
synchronize again."""


def resources(settings: RedisSettings, clusters: int) -> ComputeResources:
    """CPU and memory of a node. `clusters`: how many RayClusters keep their tables there."""
    if settings.resources:
        return settings.resources
    # Changed resources restart every node, so few changes of the number of RayClusters change them: 1, 2, 4, 8, ...
    counted = 1 << max(clusters - 1, 0).bit_length()
    cpu, memory = (each[0] + each[1] * counted for each in (_CPU, _MEMORY))
    return ComputeResources(cpu=f"{cpu}m", memory=f"{memory}Mi")


def max_memory(memory: str) -> int:
    """Bytes for data (`maxmemory`). Redis refuses more with an error and evicts nothing."""
    return int(amount(memory) * _DATA)


def output_buffer(memory: str) -> int:
    """Bytes that may wait for a replica (`client-output-buffer-limit`)."""
    return int(amount(memory) * _LAG)
