"""What a stack file may say about queues, and about the scheduler that serves them."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator

from core.nodes import GPU_RESOURCE
from core.problems import Problem, Problems
from core.quantities import amount
from core.types import DnsLabel, LabelKey, LabelValue, Memory, Quantity, QuantityOrZero, Settings

from ..kueue.settings import KueueSettings
from ..volcano.settings import VolcanoSettings

Backend = Literal["volcano", "kueue"]
"""What serves the queues."""

ROOT = "root"
"""The queue above all that name no parent. Volcano makes it, and `default` for pods that name no queue."""

RESERVED = (ROOT, "default")
"""Queues that Volcano makes itself."""

MOST_WEIGHT = 65535
"""The Queue's CRD takes no more (volcano, config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml)."""

_OF_ITS_OWN = {"cpu", "memory", GPU_RESOURCE}
"""Resources that have keys of their own."""


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} is a queue that Volcano makes itself: choose another name")
    return name


QueueName = Annotated[DnsLabel, AfterValidator(_not_reserved)]
"""Name of a queue of the stack."""

Count = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]


class QueueAmounts(Settings):
    """Amounts of resources, as pods request them. Of what is not said nothing is said, not even that there is none."""

    gpus: Count | None = None
    """GPUs of all products together (`nvidia.com/gpu`)."""

    gpus_by_product: dict[LabelValue, Count] = Field(default_factory=dict)
    """GPUs of each product, by the `gpuProduct` of nodes, in the place of `gpus`. Only Kueue tells them apart."""

    cpu: Quantity | None = None
    """CPUs."""

    memory: Memory | None = None
    """Memory."""

    resources: dict[LabelKey, QuantityOrZero] = Field(default_factory=dict)
    """Further resources by their names in Kubernetes: `{rdma/hca: 8}`."""

    @property
    def named(self) -> dict[str, str]:
        """The amounts by resource, as Kubernetes writes them."""
        gpus = sum(self.gpus_by_product.values()) if self.gpus_by_product else self.gpus
        said = {"cpu": self.cpu, "memory": self.memory, GPU_RESOURCE: None if gpus is None else str(gpus)}
        return {**{key: value for key, value in said.items() if value is not None}, **self.resources}

    @property
    def numbers(self) -> dict[str, Decimal]:
        """The amounts by resource."""
        return {resource: amount(value) for resource, value in self.named.items()}

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> Self:
        problems = [
            Problem(("resources", key), self.resources[key], f"{key} has a key of its own: set that", "said-twice")
            for key in sorted(_OF_ITS_OWN & self.resources.keys())
        ]
        if self.gpus is not None and self.gpus_by_product:
            message = "gpusByProduct says it already: remove one of them"
            problems.append(Problem(("gpus",), self.gpus, message, "said-twice"))
        if problems:
            raise Problems(problems)
        return self


NOTHING = QueueAmounts()


class QueueSettings(Settings):
    """A queue: what it always has, what it has a right to, and the most that it may have. First come, first served.

    A gang is the head of a RayCluster and its least workers; it starts whole or waits. Each amount is of all that runs
    in the queue, of whatever namespace, and the order is guarantee <= deserved <= capability.
    """

    weight: Annotated[int, Strict(), Field(ge=1, le=MOST_WEIGHT)] | None = None
    """Share relative to other queues, of the whole cluster with Volcano's `queueShares: proportion`, which alone heeds
    it there, and of what is borrowed with Kueue's fair sharing. Default: 1."""

    guarantee: QueueAmounts = NOTHING
    """What is kept free for it, whoever else waits."""

    deserved: QueueAmounts = NOTHING
    """What it gets back from queues that have more than they deserve. Default: what is guaranteed. Volcano heeds it
    with `queueShares: capacity`, its default here."""

    capability: QueueAmounts = NOTHING
    """What it never exceeds, autoscaled workers included. Default: no limit."""

    parent: QueueName | None = None
    """Queue of which it has a share. RayClusters wait only in queues that are no parent. Default: the whole cluster."""

    reclaimable: bool = True
    """False: what it has beyond what it deserves is left to it until it ends."""

    priority: Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)] = 0
    """Queues of a greater one are served first, and give back last."""

    dequeue_strategy: Literal["fifo", "traverse"] = "fifo"
    """`fifo`: the eldest goes first. `traverse`: one for which there is room may go before an elder for which there is
    none. Volcano 1.14.1 takes both words and does the second."""

    def amounts(self, part: str) -> dict[str, Decimal]:
        """`guarantee`, `deserved` or `capability` by resource. Of what is guaranteed at least as much is deserved."""
        said: QueueAmounts = getattr(self, part)
        return {**self.guarantee.numbers, **said.numbers} if part == "deserved" else said.numbers

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if problems := list(self._out_of_order()):
            raise Problems(problems)
        return self

    def _out_of_order(self) -> Iterator[Problem]:
        guarantee, deserved, capability = (self.amounts(part) for part in ("guarantee", "deserved", "capability"))
        for resource, value in guarantee.items():
            if value > deserved[resource]:
                yield _more("guarantee", self.guarantee, resource, "deserved", self.deserved)
        if not capability:
            return
        parts: Mapping[str, QueueAmounts] = {"guarantee": self.guarantee, "deserved": self.deserved}
        for part, said in parts.items():
            for resource, value in said.numbers.items():
                if resource not in capability and value > 0:
                    message = (
                        f"{part} names {resource}, and capability does not, which Volcano takes for 0 then: name it in "
                        "capability, too"
                    )
                    yield Problem((part, key_of(resource)), said.named[resource], message, "queue-amounts-in-order")
                elif value > capability.get(resource, value):
                    yield _more(part, said, resource, "capability", self.capability)


def key_of(resource: str) -> str:
    """The key under which a resource's amount stands."""
    return "gpus" if resource == GPU_RESOURCE else resource


def _more(part: str, said: QueueAmounts, resource: str, than: str, most: QueueAmounts) -> Problem:
    value, limit = said.named[resource], most.named[resource]
    message = f"{part} {value} of {resource} is more than {than} {limit}: lower {part} or raise {than}"
    return Problem((part, key_of(resource)), value, message, "queue-amounts-in-order")


class SharedQueueSettings(QueueSettings):
    """A queue of the cluster that several tenants may share."""

    name: QueueName
    """What RayClusters call it."""

    allowed_namespaces: tuple[DnsLabel, ...] | None = None
    """Namespaces that may use it; the API server refuses what others put into it. Default: those of the tenants that
    name it in this file."""


def _as_mapping(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class TenantQueueSettings(QueueSettings):
    """The queue of a tenant's RayClusters: the name of a shared one; or a queue of its own, which is called as its
    namespace and which only it may use."""

    name: QueueName | None = None
    """Name of a queue in `queues`, without other keys; in short: `queue: NAME`. Default: a queue of its own."""

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        others = sorted(self.model_fields_set - {"name"})
        if self.name is not None and others:
            message = f"queue {self.name!r} is said in queues, with all that it has: remove the name, or what is beside"
            raise Problems([Problem(("name",), self.name, message, "said-twice")])
        return self


TenantQueue = Annotated[
    TenantQueueSettings, BeforeValidator(_as_mapping, json_schema_input_type=QueueName | TenantQueueSettings)
]
"""`research`, or `{guarantee: {gpus: 8}}`."""


class SchedulerSettings(Settings):
    """What serves the queues. Just one."""

    volcano: VolcanoSettings | None = None
    """Volcano, in place of Kubernetes' scheduler for Ray's pods: gangs, queues, bin packing."""

    kueue: KueueSettings | None = None
    """Kueue, before Kubernetes' scheduler: RayClusters are suspended until there is room for them."""

    @property
    def backend(self) -> Backend:
        """Which it is."""
        return "volcano" if self.volcano else "kueue"

    @model_validator(mode="after")
    def _just_one(self) -> Self:
        if self.volcano and self.kueue:
            message = "volcano and kueue would both hold back the same pods: remove one of them"
            raise Problems([Problem(("kueue",), None, message, "one-scheduler")])
        if not (self.volcano or self.kueue):
            message = "names no scheduler: write {volcano: {}}, or remove it for Kubernetes' own"
            raise Problems([Problem((), None, message, "one-scheduler")])
        return self
