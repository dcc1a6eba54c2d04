"""Settings of queues and of their scheduler."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from components.kueue.settings import KueueSettings
from components.volcano.settings import VolcanoSettings
from core.nodes import GPU_RESOURCE
from core.problems import Path, Problem
from core.quantities import amount
from core.types import CheckedSettings, DnsLabel, LabelKey, LabelValue, Memory, NotEmpty, Quantity, QuantityOrZero

Backend = Literal["volcano", "kueue"]
"""The scheduler of the queues."""

SchedulerName = Literal["kubernetes", "volcano", "kueue"]
"""A scheduler of RayClusters: Kubernetes' own, without queues and gangs, or the stack's."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


SchedulerNames = Annotated[
    tuple[SchedulerName, ...],
    NotEmpty,
    BeforeValidator(_as_list, json_schema_input_type=SchedulerName | tuple[SchedulerName, ...]),
]
"""`kueue`, or `[kueue, kubernetes]`."""

ROOT = "root"
"""The parent of all queues without a parent. Volcano creates it, and `default` for pods that name no queue."""

RESERVED = (ROOT, "default")
"""Queues that Volcano creates itself."""

MOST_WEIGHT = 65535
"""The maximum of the Queue's CRD (volcano, config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml)."""

_OF_ITS_OWN = {"cpu", "memory", GPU_RESOURCE}
"""Resources with their own keys."""


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} is a queue that Volcano creates itself: choose another name")
    return name


QueueName = Annotated[DnsLabel, AfterValidator(_not_reserved)]
"""Name of a queue of the stack."""

Count = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]


class QueueAmounts(CheckedSettings):
    """Amounts of resources, as pods request them. A resource that is not set is not restricted; it is not 0."""

    gpus: Count | None = None
    """GPUs of all products together (`nvidia.com/gpu`). Of another gpuResource set `resources: {amd.com/gpu: 8}`."""

    gpus_by_product: dict[LabelValue, Count] = Field(default_factory=dict)
    """GPUs of each product, by the `gpuProduct` of nodes, instead of `gpus`. Only Kueue distinguishes products."""

    cpu: Quantity | None = None
    """CPUs."""

    memory: Memory | None = None
    """Memory."""

    resources: dict[LabelKey, QuantityOrZero] = Field(default_factory=dict)
    """Other resources by their Kubernetes names: `{rdma/hca: 8}`."""

    @property
    def named(self) -> dict[str, str]:
        """The amounts by resource, as Kubernetes writes them."""
        gpus = sum(self.gpus_by_product.values()) if self.gpus_by_product else self.gpus
        own = {"cpu": self.cpu, "memory": self.memory, GPU_RESOURCE: None if gpus is None else str(gpus)}
        return {**{key: value for key, value in own.items() if value is not None}, **self.resources}

    @property
    def numbers(self) -> dict[str, Decimal]:
        """The amounts by resource."""
        return {resource: amount(value) for resource, value in self.named.items()}

    def problems(self) -> Iterator[Problem]:
        for key in sorted(_OF_ITS_OWN & self.resources.keys()):
            yield Problem(("resources", key), self.resources[key], f"{key} has its own key: set that", "said-twice")
        if self.gpus is not None and self.gpus_by_product:
            message = "gpusByProduct already sets the GPUs: remove one of them"
            yield Problem(("gpus",), self.gpus, message, "said-twice")


NOTHING = QueueAmounts()


class QueueSettings(CheckedSettings):
    """A queue: its guaranteed, deserved and maximum resources. First come, first served.

    A gang is the head of a RayCluster and its minimum workers. It starts whole or waits. Each amount is for all pods of
    the queue in all namespaces, and guarantee <= deserved <= capability.
    """

    weight: Annotated[int, Strict(), Field(ge=1, le=MOST_WEIGHT)] | None = None
    """Share relative to other queues: of the whole cluster with Volcano's `queueShares: proportion` (Volcano's other
    mode ignores it), and of borrowed resources with Kueue's fair sharing. Default: 1."""

    guarantee: QueueAmounts = NOTHING
    """Resources that are kept free for it, even if other queues wait."""

    deserved: QueueAmounts = NOTHING
    """Resources that it reclaims from queues above their own deserved share. Default: the guarantee. Volcano uses it
    with `queueShares: capacity`, the default here."""

    capability: QueueAmounts = NOTHING
    """Its maximum, including autoscaled workers. Default: no limit."""

    parent: QueueName | None = None
    """Queue of which it has a share. RayClusters wait only in queues without children. Default: the whole cluster."""

    reclaimable: bool = True
    """False: other queues do not reclaim its resources above its deserved share."""

    priority: Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)] = 0
    """Queues with a higher priority are served first, and are the last to be reclaimed from."""

    dequeue_strategy: Literal["fifo", "traverse"] = "fifo"
    """`fifo`: the oldest gang starts first. `traverse`: a gang with room may start before an older one without room.
    Volcano 1.14.1 accepts both values and does the second."""

    def amounts(self, part: str) -> dict[str, Decimal]:
        """`guarantee`, `deserved` or `capability` by resource. `deserved` includes the guarantee."""
        configured: QueueAmounts = getattr(self, part)
        return {**self.guarantee.numbers, **configured.numbers} if part == "deserved" else configured.numbers

    def problems(self) -> Iterator[Problem]:
        guarantee, deserved, capability = (self.amounts(part) for part in ("guarantee", "deserved", "capability"))
        by_product = self.deserved.gpus_by_product and self.guarantee.gpus_by_product
        for product, number in by_product.items():
            # Kueue refuses their difference below 0 as a lendingLimit (clusterqueue_webhook.go:
            # validateResourceQuantity).
            if number > (limit := self.deserved.gpus_by_product.get(product, 0)):
                yield _more(("guarantee", "gpusByProduct", product), number, product, "deserved", limit)
        for resource, value in guarantee.items():
            if value > deserved[resource] and not (by_product and resource == GPU_RESOURCE):
                yield _more_than("deserved", self.deserved, "guarantee", self.guarantee, resource)
        if not capability:
            return
        parts: Mapping[str, QueueAmounts] = {"guarantee": self.guarantee, "deserved": self.deserved}
        for part, lower in parts.items():
            for resource, value in lower.numbers.items():
                if resource not in capability and value > 0:
                    message = (
                        f"{part} sets {resource}, and capability does not: set it in capability, too (Volcano would "
                        "take 0 for it)"
                    )
                    yield Problem((part, key_of(resource)), lower.named[resource], message, "queue-amounts-in-order")
                elif value > capability.get(resource, value):
                    yield _more_than("capability", self.capability, part, lower, resource)


def key_of(resource: str) -> str:
    """The key of a resource's amount."""
    return "gpus" if resource == GPU_RESOURCE else resource


def _more(path: Path, value: str | int, resource: str, than: str, limit: str | int) -> Problem:
    message = f"{path[0]} {value} of {resource} is more than {than} {limit}: lower {path[0]} or raise {than}"
    return Problem(path, value, message, "queue-amounts-in-order")


def _more_than(than: str, most: QueueAmounts, part: str, lower: QueueAmounts, resource: str) -> Problem:
    return _more((part, key_of(resource)), lower.named[resource], resource, than, most.named[resource])


class SharedQueueSettings(QueueSettings):
    """A queue of the cluster that several tenants may share."""

    name: QueueName
    """Its name, with which RayClusters select it."""

    allowed_namespaces: tuple[DnsLabel, ...] | None = None
    """Namespaces that may use it; the API server refuses it for others. Default: those of the tenants that name it in
    this file."""


def _as_mapping(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class TenantQueueSettings(QueueSettings):
    """The queue of a tenant's RayClusters: the name of a shared queue; or its own queue, which has the name of its
    namespace and which only this tenant may use."""

    name: QueueName | None = None
    """Name of a queue in `queues`, without other keys; short form: `queue: NAME`. Default: its own queue."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        others = sorted(self.model_fields_set - {"name"})
        if self.name is not None and others:
            message = f"queue {self.name!r} is configured in queues: remove the name, or the keys beside it"
            yield Problem(("name",), self.name, message, "said-twice")


TenantQueue = Annotated[
    TenantQueueSettings, BeforeValidator(_as_mapping, json_schema_input_type=QueueName | TenantQueueSettings)
]
"""`research`, or `{guarantee: {gpus: 8}}`."""


class SchedulerSettings(CheckedSettings):
    """The scheduler of the queues: exactly one."""

    volcano: VolcanoSettings | None = None
    """Volcano, in place of Kubernetes' scheduler for Ray's pods: gangs, queues, bin packing."""

    kueue: KueueSettings | None = None
    """Kueue, before Kubernetes' scheduler: RayClusters are suspended until there is room for them."""

    @property
    def backend(self) -> Backend:
        return "volcano" if self.volcano else "kueue"

    @property
    def configured(self) -> VolcanoSettings | KueueSettings:
        """The settings of the backend."""
        found = self.volcano or self.kueue
        assert found
        return found

    def problems(self) -> Iterator[Problem]:
        if self.volcano and self.kueue:
            message = "volcano and kueue would both hold back the same pods: remove one of them"
            yield Problem(("kueue",), None, message, "one-scheduler")
        if not (self.volcano or self.kueue):
            message = "names no scheduler: write {volcano: {}}, or remove it for Kubernetes' own"
            yield Problem((), None, message, "one-scheduler")


@dataclass(frozen=True)
class Queue:
    """A queue that the stack creates."""

    name: str

    settings: QueueSettings

    namespaces: tuple[str, ...] = ()
    """Namespaces that may use it."""

    path: Path = ()
    """Path of its settings."""

    of_tenant: bool = False
    """Whether it is a tenant's own queue, with the name of the tenant's namespace."""


def children(queues: Iterable[Queue]) -> Mapping[str | None, list[Queue]]:
    """The children of each queue by its name; under None, the queues without a parent."""
    found: dict[str | None, list[Queue]] = defaultdict(list)
    for queue in queues:
        found[queue.settings.parent].append(queue)
    return found


def parents_first(queues: Iterable[Queue]) -> list[Queue]:
    """The queues, each after its parent. Queues with an unknown parent or in a cycle are omitted."""
    below = children(queues)
    ordered = list(below[None])
    for queue in ordered:
        ordered += below[queue.name]
    return ordered
