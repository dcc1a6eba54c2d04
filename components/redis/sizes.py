"""How much of everything a node of Redis gets."""

from decimal import Decimal

from core.quantities import amount

from ..operator.settings import ComputeResources
from .settings import RedisSettings

SENTINEL = ComputeResources(cpu="100m", memory="64Mi")
"""A Sentinel takes 7 MiB, and has to answer when its neighbours do not."""

_CPU = (100, 10)
_MEMORY = (256, 64)
"""Millicores and MiB of a node without clusters, and for each. The tables of a RayCluster are some MiB; most of it is
what its jobs put there (functions, runtime environments up to 16 MiB)."""

_DATA = Decimal("0.6")
"""Share of a node's memory that data may fill. The rest is for what is copied when the AOF is rewritten, for replicas
that lag behind, and for connections."""

_LAG = Decimal("0.15")
"""Share of a node's memory that may wait for a replica, before this is cut off and has to begin anew."""


def resources(settings: RedisSettings, clusters: int) -> ComputeResources:
    """CPU and memory of a node. `clusters`: how many RayClusters keep their tables there."""
    if settings.resources:
        return settings.resources
    # Other amounts restart every node, so most RayClusters that come or go are to change nothing: 1, 2, 4, 8, ...
    counted = 1 << max(clusters - 1, 0).bit_length()
    cpu, memory = (each[0] + each[1] * counted for each in (_CPU, _MEMORY))
    return ComputeResources(cpu=f"{cpu}m", memory=f"{memory}Mi")


def max_memory(memory: str) -> int:
    """Bytes that data may fill (`maxmemory`); more is refused with an error, never evicted."""
    return int(amount(memory) * _DATA)


def output_buffer(memory: str) -> int:
    """Bytes that may wait for a replica (`client-output-buffer-limit`)."""
    return int(amount(memory) * _LAG)
