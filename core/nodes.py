"""Pools of identical nodes in a stack file. They are not provisioned; worker sizes are derived from them."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, Strict

from core.problems import Problem
from core.types import CheckedSettings, Gpus, LabelKey, Labels, LabelValue, Memory, Quantity, Settings, dns_1035_label

GPU_RESOURCE = "nvidia.com/gpu"
"""The extended resource of NVIDIA's device plugin."""

ACCELERATOR = re.compile(
    r"gpu([._-].*)?$|^gpu[.]|/mig-|/v?npu|/[a-z]*tpu|/neuron|/gaudi|/hpu|/[Aa]scend|/mlu|/dcu|/qaic|/rngd|/warboy"
)
"""Extended resources of GPUs (as KubeRay's utils/resources.go: IsGPUResourceKey) and of other accelerators, by the
names of their device plugins: TPUs, Trainium and Inferentia, Gaudi, Ascend and others. CEL has the same syntax."""

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
"""The node label of NVIDIA's GPU feature discovery: the product's name, e.g. NVIDIA-A100-SXM4-80GB."""


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
    """GPUs of one node (`nvidia.com/gpu`)."""

    gpu_product: LabelValue | None = Field(default=None, min_length=1)
    """Value of the node label `nvidia.com/gpu.product`. Selects the nodes of workers, and names a Ray resource."""

    gpu_hour_price: Annotated[float, Strict(), Field(ge=0, le=1_000_000, allow_inf_nan=False)] | None = None
    """Price of a GPU of the pool per hour, in any currency; `python -m stacks plan` uses it."""

    labels: Labels = Field(default_factory=dict)
    """Labels that only this pool's nodes carry. Pods for the pool select nodes by them."""

    taints: tuple[Taint, ...] = ()
    """Taints of the nodes."""

    def problems(self) -> Iterator[Problem]:
        if self.gpu_product and not self.gpus:
            message = f"pool {self.pool!r} names gpuProduct {self.gpu_product!r} but has 0 gpus: set gpus"
            yield Problem(("gpuProduct",), self.gpu_product, message, "product-without-gpus")
