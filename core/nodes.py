"""Pools of identical nodes in a stack file. They are not provisioned; worker sizes are derived from them."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from core.problems import Problem
from core.types import (
    CheckedSettings,
    GpuHourPrice,
    Gpus,
    LabelKey,
    Labels,
    LabelValue,
    Memory,
    Quantity,
    Settings,
    dns_1035_label,
)

GPU_RESOURCE = "nvidia.com/gpu"
"""The extended resource of NVIDIA's device plugin: what a pool counts as GPUs, unless it names another one."""

ACCELERATOR = re.compile(
    r"gpu([._-].*)?$|^gpu[.]|/mig-|/v?npu|/[a-z]*tpu|/neuron|/gaudi|/hpu|/[Aa]scend|/mlu|/dcu|/qaic|/rngd|/warboy"
)
"""Extended resources of GPUs (as KubeRay's utils/resources.go: IsGPUResourceKey) and of other accelerators, by the
names of their device plugins: TPUs, Trainium and Inferentia, Gaudi, Ascend and others. CEL has the same syntax."""

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
"""The node label of NVIDIA's GPU feature discovery: the product's name, e.g. NVIDIA-A100-SXM4-80GB."""


_MIG = re.compile(r"nvidia\.com/mig-(\d+c\.)?\d+g\.\d+gb([.-][a-z.]+)?")
"""A slice of a GPU, as NVIDIA's device plugin names it (k8s-device-plugin, internal/rm/device_map.go)."""


def _of_an_accelerator(name: str) -> str:
    is_one = ACCELERATOR.search(name) and ("/mig-" not in name or _MIG.fullmatch(name))
    if "/" not in name or name.startswith("requests.") or not is_one:
        raise ValueError(
            f"{name!r} is not a resource of accelerators: write the name below `allocatable` of a node, for example "
            "amd.com/gpu, nvidia.com/mig-1g.10gb, gpu.intel.com/i915, habana.ai/gaudi or google.com/tpu"
        )
    return name


GpuResource = Annotated[LabelKey, AfterValidator(_of_an_accelerator)]
"""An extended resource whose units count as GPUs."""


PoolName = Annotated[str, dns_1035_label(50)]
"""Leaves room for the suffixes of worker group names."""


class Taint(Settings):
    """A Kubernetes taint. Workers of the pool get the toleration that matches it."""

    key: LabelKey
    """The taint's key."""

    value: LabelValue = ""
    """The taint's value."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """What happens to pods that do not tolerate it."""


class NodePool(CheckedSettings):
    """Nodes of one shape. The amounts are the allocatable resources of one node."""

    pool: PoolName
    """Name of the pool; worker group names start with it."""

    count: Annotated[int, Strict(), Field(ge=1, le=5000)]
    """Number of nodes. Kubernetes is built for at most 5000 (kubernetes.io, Considerations for large clusters)."""

    cpu: Quantity
    """CPUs of one node."""

    memory: Memory
    """Memory of one node."""

    gpus: Gpus = 0
    """GPUs of one node, or other accelerators: units of `gpuResource`."""

    gpu_resource: GpuResource = GPU_RESOURCE
    """The resource of its GPUs, as the device plugin names it: `amd.com/gpu`, `nvidia.com/mig-1g.10gb` for slices,
    `habana.ai/gaudi`."""

    gpu_product: LabelValue | None = Field(default=None, min_length=1)
    """Value of the node label `nvidia.com/gpu.product`. Selects the nodes of workers, and names a Ray resource."""

    gpu_hour_price: GpuHourPrice | None = None
    """Price of a GPU of the pool per hour, in any currency; `ray-platform plan` uses it."""

    labels: Labels = Field(default_factory=dict)
    """Labels that only this pool's nodes carry. Pods for the pool select nodes by them."""

    taints: tuple[Taint, ...] = ()
    """Taints of the nodes."""

    def problems(self) -> Iterator[Problem]:
        named = "gpu_resource" in self.model_fields_set
        yield from resource_without_gpus(self.gpu_resource if named else None, self.gpus)
        if self.gpu_product and not self.gpus:
            message = f"pool {self.pool!r} names gpuProduct {self.gpu_product!r} but has 0 gpus: set gpus"
            yield Problem(("gpuProduct",), self.gpu_product, message, "product-without-gpus")
        elif self.gpu_product and not self.gpu_resource.startswith("nvidia.com/"):
            message = (
                f"only NVIDIA's nodes have the label {GPU_PRODUCT_LABEL}, and the pool's GPUs are {self.gpu_resource}: "
                "set labels"
            )
            yield Problem(("gpuProduct",), self.gpu_product, message, "product-without-gpus")


def resource_without_gpus(resource: str | None, gpus: int) -> Iterator[Problem]:
    """A resource of GPUs without their number."""
    if resource and not gpus:
        message = f"it says what gpus are, {resource}, and there are 0: set gpus, or remove it"
        yield Problem(("gpuResource",), resource, message, "resource-without-gpus")


def gpu_resources(pools: Iterable[NodePool]) -> tuple[str, ...]:
    """The resources that are GPUs in a stack with these pools; NVIDIA's is always the first."""
    return tuple(dict.fromkeys([GPU_RESOURCE, *(pool.gpu_resource for pool in pools)]))


def gpus_of(amounts: Mapping[str, Decimal]) -> Decimal:
    """The GPUs in amounts by resource: those of all vendors together."""
    return sum((amounts[name] for name in gpu_names(amounts)), Decimal(0))


def gpu_names(amounts: Iterable[str]) -> list[str]:
    """The resources of accelerators among these names."""
    return [name for name in amounts if _is_accelerator(name)]


@functools.lru_cache(maxsize=4096)
def _is_accelerator(entry: str) -> bool:
    """Not for entries of quotas, which repeat the same amounts."""
    return not entry.startswith(("requests.", "limits.")) and ACCELERATOR.search(entry) is not None
