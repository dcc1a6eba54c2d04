"""Settings of the Redis gateway in the stack file. The program's own settings are in
components/payloads/redis_gateway/settings.py."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from components.operator.settings import ComputeResources
from core.quantities import amount
from core.types import Duration, Settings, seconds

LONGEST_HOLD = 300
"""Seconds; the gateway's own limit, half the lifetime of its journals."""


def _holdable(duration: str) -> str:
    if not 1 <= seconds(duration) <= LONGEST_HOLD:
        raise ValueError(f"{duration!r} is not from 1s to {LONGEST_HOLD}s, as long as the gateway can hold a command")
    return duration


_OWN_MEMORY = 64 << 20
"""Bytes of a gateway without large values: 40 MiB, and commands that it holds."""


class GatewaySettings(Settings):
    """A container beside each fault tolerant head, with Ray's image, that keeps the GCS's connection open while Redis
    fails over. Without it each failover restarts the head. It is a native sidecar, for which the cluster needs
    Kubernetes 1.29 or later."""

    wait_replicas: Annotated[int, Strict(), Field(ge=0, le=16)] | None = None
    """Number of replicas that must have a write before it is acknowledged to Ray. Default: 1, without replicas 0."""

    unreplicated: Literal["hold", "answer"] = "hold"
    """The action for a write that too few replicas have: `hold` waits up to `holdTimeout`, so that no acknowledged
    write is lost; `answer` acknowledges it anyway."""

    hold_timeout: Annotated[Duration, AfterValidator(_holdable)] = "60s"
    """Time for which a command is held without a master; afterwards Ray gets an error. At most 300s."""

    resources: ComputeResources = ComputeResources(cpu="250m", memory="512Mi")
    """CPU and memory of the container. It holds a package of a runtime environment twice while a worker reads it, so it
    refuses values larger than half of its memory without 64Mi: 224Mi with the default."""

    @property
    def largest_value(self) -> int:
        """Bytes of the largest command that the container has memory for. A gateway without memory restarts its head,
        again and again when workers read the value."""
        return min(max((int(amount(self.resources.memory)) - _OWN_MEMORY) // 2, 1 << 20), 512 << 20)
