"""Settings of the head and the workers of a RayCluster. Both are Ray nodes.

Pod templates, overrides and flags of `ray start` are in the syntax of Kubernetes and KubeRay, and the CRD's schema
validates them. Refused here is what no CRD refuses: secrets in plain text, and flags that a shell would interpret.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict

from core.nodes import PoolName
from core.problems import Path, Problem, Problems
from core.secrets import is_secret, plain_secret
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

_CREDENTIALS = {"redisPassword"}
"""KubeRay's fields that take a secret as `value` or as `valueFrom` (GcsFaultToleranceOptions)."""


def _checked(fragment: dict[str, Any]) -> dict[str, Any]:
    if problems := list(_faults((), fragment)):
        raise Problems(problems)
    return fragment


def _faults(path: Path, value: Any) -> Iterator[Problem]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults((*path, index), item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            below = (*path, str(key))
            if key == "rayStartParams" and isinstance(item, Mapping):
                yield from (problem.below(below) for problem in flag_faults(item))
            elif key == "env" and isinstance(item, list):
                yield from _secrets(below, item)
            elif key in _CREDENTIALS and isinstance(item, Mapping) and item.get("value"):
                yield plain_secret(str(key)).below((*below, "value"))
            else:
                yield from _faults(below, item)


def _secrets(path: Path, env: list[Any]) -> Iterator[Problem]:
    for index, variable in enumerate(env):
        name, value = (variable.get("name"), variable.get("value")) if isinstance(variable, Mapping) else (None, None)
        if isinstance(name, str) and isinstance(value, str) and is_secret(name, value):
            yield plain_secret(name).below((*path, index, "value"))


PodTemplate = Annotated[dict[str, Any], AfterValidator(_checked)]
"""A pod template, merged over the derived one as Kubernetes' strategic merge does. Ray's container is the first; it is
named `ray-head` or `ray-worker`."""

Overrides = Annotated[dict[str, Any], AfterValidator(_checked)]
"""Part of a RayCluster's spec, merged as Kubernetes' strategic merge does."""


_ONE_WORD = re.compile(
    r"""(?:
      [^\s"'`$\\;&|<>(){}*?\[\]~\x00-\x1f\x7f]       # plain
    | \\[^\s\x00-\x1f\x7f]                           # escaped
    | \$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})            # a variable
    | '[^'\x00-\x1f\x7f]*'                           # in single quotes all is plain
    | "(?:[^"`$\\\x00-\x1f\x7f]|\\[^\x00-\x1f\x7f]|\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\}))*"
    )*""",
    re.VERBOSE,
)
"""One word of bash that runs nothing (KubeRay: ray-operator/controllers/ray/common/pod.go, convertParamMap)."""

_FLAG = r"[a-z][a-z0-9-]*"

_SHOWN = 60


def flag_faults(params: Mapping[str, Any]) -> list[Problem]:
    """The problems of the flags of a group, wherever they are set."""
    return [problem for flag, value in params.items() for problem in _faults_of_flag(str(flag), value)]


def _faults_of_flag(flag: str, value: Any) -> list[Problem]:
    if flag == "redis-password":
        advice = "give it as gcsFaultToleranceOptions.redisPassword.valueFrom in overrides"
        return [Problem((flag,), None, f"a command line keeps no secret: {advice}", "redis-password")]
    if not re.fullmatch(_FLAG, flag):
        message = f"{flag!r} is no flag of ray start: write one without its leading hyphens, as num-cpus"
        return [Problem((flag,), value, message, "ray-start-flag")]
    if not isinstance(value, str) or _ONE_WORD.fullmatch(value):
        return []
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    message = (
        f"{shown!r} is not one word to the shell that starts Ray, or would run a command there: put single quotes "
        """inside the text, as in "'{\\"spot\\": 1}'"; outside of them, variables stand as $NAME"""
    )
    return [Problem((flag,), value, message, "shell-word")]


def _checked_flags(params: dict[str, str]) -> dict[str, str]:
    if problems := flag_faults(params):
        raise Problems(problems)
    return params


RayStartParams = Annotated[
    dict[Annotated[str, Field(pattern=f"^{_FLAG}$", max_length=63)], str], AfterValidator(_checked_flags)
]
"""Flags of `ray start` without the leading hyphens. All values are text: `num-cpus: "4"`."""


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
    """Labels of the head as a node of Ray (`headGroupSpec.labels`); its pod has them too."""

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
    """Labels of the workers as nodes of Ray (`workerGroupSpecs[].labels`); their pods have them too."""

    idle_timeout: Duration | None = None
    """Idle time after which a worker of the group is removed. Default: the cluster's idleTimeout."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod template of these workers, in Kubernetes' own words; Ray's container is `ray-worker`."""
