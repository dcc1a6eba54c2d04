"""Settings of the head and the workers of a RayCluster. Both are Ray nodes."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from components.ray_cluster.fragments import PodTemplate, RayStartParams
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


class HeadSettings(Settings):
    """The head: it runs Ray's own processes and the autoscaler, but no tasks, so it offers Ray 0 CPUs and 0 GPUs."""

    cpu: Quantity = "2"
    """CPUs of the head's container."""

    memory: Memory = "16Gi"
    """Memory of the head's container. A head that runs out of memory ends the whole cluster."""

    pool: PoolName | None = None
    """Pool whose nodes run the head. It must have labels or a gpuProduct that distinguish it. Default: any node."""

    image: Image | None = None
    """Image of the head alone. Default: the cluster's."""

    env: Env = Field(default_factory=dict)
    """Environment variables of the head alone, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further flags of `ray start`, over the derived ones."""

    service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] | None = None
    """Type of the head's Service. `NodePort` and `LoadBalancer` expose its ports outside the cluster. Default:
    KubeRay's, `ClusterIP`."""

    labels: Labels = Field(default_factory=dict)
    """Labels of the head as a node of Ray (`headGroupSpec.labels`); its pod has them too. From Ray 2.45 on."""

    evictable: bool = False
    """True: a node drain may evict the head, which ends all work on the cluster. Default: a PodDisruptionBudget
    prevents that."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the head's pod template, in Kubernetes' own words; Ray's container is `ray-head`."""


Profile = Literal["doubling", "tiling", "ado"]
"""How nodes are divided into workers."""


class Variant(Settings):
    """One worker size, which becomes a worker group. Values that are not set are derived from the pool."""

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
    """Most workers at a time. Default: the number of the pool's nodes for a worker of a whole node, else 2; with
    `profile: tiling` as many as fit on the pool's nodes. Never more than `budget` allows."""

    idle_timeout: Duration | None = None
    """Idle time after which a worker of this size is removed. Default: the cluster's idleTimeout."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod template of this size alone, in Kubernetes' own words; Ray's container is `ray-worker`."""


class Reserve(Settings):
    """The part of a node that is left for daemons, system pods and perhaps a head."""

    cpu: QuantityOrZero | None = None
    """Default: a sixteenth of the node's CPUs."""

    memory: QuantityOrZero | None = None
    """Default: a sixteenth of the node's memory; a fifth with `profile: ado`."""


class Budget(Settings):
    """The maximum for all workers of one size together."""

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
    """`doubling`: sizes double, and at most two workers run of each size but the largest. `tiling`: each size divides a
    node without rest (8 GPUs: 1, 2, 4, 8; 6: 1, 2, 3, 6), and as many run as nodes and budget allow. `ado`: as
    `doubling`, with the CPUs and memory of ado's guide."""

    reserve: Reserve = Reserve()
    """The part of each node that derived sizes leave free."""

    budget: Budget = Budget()
    """Limits maxReplicas of the sizes that do not set it. Default: none; with `profile: tiling` the tenant's quota and
    the capability of its own queue, for amounts that are not set."""

    env: Env = Field(default_factory=dict)
    """Environment variables of these workers, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further flags of `ray start`, over the derived ones."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod templates of these workers, in Kubernetes' own words; Ray's container is `ray-worker`."""


class WorkerGroupSettings(Settings):
    """A worker group as in KubeRay, not derived from a pool. Only the cluster's image, environment, volumes, account
    and labels are added."""

    group_name: DnsLabel
    """Name of the worker group."""

    replicas: Replicas | None = None
    """Initial workers; without autoscaling the constant number. Default: minReplicas."""

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
    """Labels of the workers as nodes of Ray (`workerGroupSpecs[].labels`); their pods have them too. From Ray 2.45
    on."""

    idle_timeout: Duration | None = None
    """Idle time after which a worker of the group is removed. Default: the cluster's idleTimeout."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod template of these workers, in Kubernetes' own words; Ray's container is `ray-worker`."""
