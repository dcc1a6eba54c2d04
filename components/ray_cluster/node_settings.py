"""What a stack file may say about the head and the workers of a RayCluster. To Ray both are nodes."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from core.nodes import PoolName
from core.types import (
    MOST_PODS,
    Dns1035Label,
    DnsLabel,
    Duration,
    Env,
    Gpus,
    Image,
    Labels,
    Memory,
    NotEmpty,
    Quantity,
    QuantityOrZero,
    Replicas,
    Settings,
)

from .fragments import PodTemplate, RayStartParams


class HeadSettings(Settings):
    """The head: it runs Ray's own processes and the autoscaler, and no task, so it has 0 CPUs and 0 GPUs for these."""

    cpu: Quantity = "2"
    """CPUs of the head's container."""

    memory: Memory = "16Gi"
    """Memory of the head's container. A head that runs out of it takes the cluster down."""

    pool: PoolName | None = None
    """Pool whose nodes run the head; it must have labels or a gpuProduct to tell it by. Default: any node."""

    image: Image | None = None
    """Image of the head alone. Default: the cluster's."""

    env: Env = Field(default_factory=dict)
    """Environment variables of the head alone, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further flags of `ray start`, over the derived ones."""

    service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] | None = None
    """Type of the head's Service. `NodePort` and `LoadBalancer` show its ports outside the cluster. Default: KubeRay's,
    `ClusterIP`."""

    labels: Labels = Field(default_factory=dict)
    """Labels of the head as a node of Ray (`headGroupSpec.labels`); its pod has them too."""

    evictable: bool = False
    """True: the head may be evicted where its node is drained, and what runs on the cluster is lost. Default: a
    PodDisruptionBudget keeps it there."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the head's pod template, in Kubernetes' own words; Ray's container is `ray-head`."""


Profile = Literal["doubling", "tiling", "ado"]
"""How nodes are cut into workers."""


class Variant(Settings):
    """One size of worker, a worker group. What is not said is derived from the pool."""

    gpus: Gpus
    """GPUs of a worker."""

    name: Dns1035Label | None = None
    """Name of the worker group. Default: `<pool>-<gpus>gpu`, or `<pool>-cpu`."""

    cpu: Quantity | None = None
    """CPUs of a worker. Default: its GPUs' share of the node less the reserve, rounded down; `profile: ado` rounds
    up."""

    memory: Memory | None = None
    """Memory of a worker. Default: its GPUs' share of the node less the reserve, rounded down to Gi."""

    min_replicas: Replicas = 0
    """Workers that are never scaled down."""

    max_replicas: Replicas | None = None
    """Most workers at a time. Default: the pool's nodes for a worker of a whole node, else 2; with `profile: tiling`
    as many as the pool's nodes hold. Never more than `budget` has room for."""

    idle_timeout: Duration | None = None
    """A worker of this size that nothing uses for so long is taken away. Default: the cluster's idleTimeout."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod template of this size alone, in Kubernetes' own words; Ray's container is `ray-worker`."""


class Reserve(Settings):
    """What of a node is left to daemons, system pods and perhaps a head."""

    cpu: QuantityOrZero | None = None
    """Default: a sixteenth of the node's CPUs."""

    memory: QuantityOrZero | None = None
    """Default: a sixteenth of the node's memory; a fifth with `profile: ado`."""


class Budget(Settings):
    """The most that workers of one size have together."""

    gpus: Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)] | None = None
    """GPUs."""

    cpu: Quantity | None = None
    """CPUs."""

    memory: Memory | None = None
    """Memory."""


class WorkersSettings(Settings):
    """Workers on one pool. Their sizes grow from one GPU to the whole node, so that a task finds a worker that fits and
    leaves few GPUs idle; a pool without GPUs has one size, a whole node."""

    pool: PoolName
    """Name of the pool in `nodes`."""

    variants: Annotated[tuple[Variant, ...], NotEmpty] | None = None
    """The sizes, in place of the derived ones."""

    profile: Profile = "doubling"
    """`doubling`: sizes double, and at most two run of each but the largest. `tiling`: each size fills a node without
    rest (8 GPUs: 1, 2, 4, 8; 6: 1, 2, 3, 6), and as many run as nodes and budget hold. `ado`: as `doubling`, with the
    CPUs and memory of ado's guide."""

    reserve: Reserve = Reserve()
    """What derived sizes leave free on each node."""

    budget: Budget = Budget()
    """Bounds maxReplicas of the sizes that do not say it. Default: none; with `profile: tiling`, for what is not said,
    the tenant's quota and the capability of its own queue."""

    env: Env = Field(default_factory=dict)
    """Environment variables of these workers, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further flags of `ray start`, over the derived ones."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod templates of these workers, in Kubernetes' own words; Ray's container is `ray-worker`."""


class WorkerGroupSettings(Settings):
    """A worker group as KubeRay has it, for one that is not cut from a pool. Nothing is added to what is said but the
    cluster's image, environment, volumes, account and labels."""

    group_name: DnsLabel
    """Name of the worker group."""

    replicas: Replicas | None = None
    """Workers at first, or always where the cluster does not scale. Default: minReplicas."""

    min_replicas: Replicas = 0
    """Workers that are never scaled down."""

    max_replicas: Replicas | None = None
    """Most workers at a time. Default: KubeRay's, any number."""

    num_of_hosts: Annotated[int, Strict(), Field(ge=1, le=MOST_PODS)] | None = None
    """Pods of one worker, for accelerators that span hosts. Default: 1."""

    cpu: Quantity | None = None
    """CPUs of a worker. Default: with a pool, its GPUs' share of the node less a sixteenth; without, no limit."""

    memory: Memory | None = None
    """Memory of a worker. Default: as of CPUs."""

    gpus: Gpus = 0
    """GPUs of a worker (`nvidia.com/gpu`)."""

    pool: PoolName | None = None
    """Pool whose nodes run the workers. Default: any node."""

    image: Image | None = None
    """Image of these workers. Default: the cluster's."""

    env: Env = Field(default_factory=dict)
    """Environment variables of these workers, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Flags of `ray start`."""

    labels: Labels = Field(default_factory=dict)
    """Labels of the workers as nodes of Ray (`workerGroupSpecs[].labels`); their pods have them too."""

    idle_timeout: Duration | None = None
    """A worker of the group that nothing uses for so long is taken away. Default: the cluster's idleTimeout."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod template of these workers, in Kubernetes' own words; Ray's container is `ray-worker`."""
