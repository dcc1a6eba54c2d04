"""Settings of a RayCluster, of its head and its workers. Both are Ray nodes.

Fragments in the syntax of Kubernetes and KubeRay (pod templates, overrides, flags of `ray start`) are validated by the
CRD's schema. Refused here is what no CRD refuses: secrets in plain text, and flags that a shell would interpret.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict

from components.idle_termination.settings import IdleTerminationSettings
from components.network.settings import IngressSettings
from components.queues.settings import QueueName, SchedulerName
from components.rollout.settings import UpdatesSettings
from components.storage.settings import StorageMountSettings
from components.tls.manifests import TlsSettings
from core.nodes import GpuResource, PoolName, resource_without_gpus
from core.problems import Path, Problem, Problems, raise_problems
from core.secrets import VARIABLE, is_secret, plain_secret
from core.types import (
    MOST_PODS,
    MOST_SECONDS,
    CheckedSettings,
    Dns1035Label,
    DnsLabel,
    DnsSubdomain,
    Duration,
    Env,
    Gpus,
    Image,
    LabelKey,
    Labels,
    Memory,
    NotEmpty,
    Quantity,
    QuantityOrZero,
    Replicas,
    Settings,
    Timeout,
    Version,
    dns_1035_label,
)
from core.versions import version_tuple
from kuberay.releases import FIRST_RAY_WITH_DRAIN, FIRST_RAY_WITH_TOKENS

_CREDENTIALS = {"redisPassword"}
"""KubeRay's fields that take a secret as `value` or as `valueFrom` (GcsFaultToleranceOptions)."""


def _checked(fragment: dict[str, Any]) -> dict[str, Any]:
    raise_problems(_faults((), fragment))
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

_FLAG = "[A-Za-z][A-Za-z0-9_-]*"

_SHOWN = 60


def flag_faults(params: Mapping[str, Any]) -> list[Problem]:
    """The problems of the flags of a group, wherever they are set."""
    return [problem for flag, value in params.items() for problem in _faults_of_flag(str(flag), value)]


def _faults_of_flag(flag: str, value: Any) -> list[Problem]:
    if flag == "redis-password" and not (isinstance(value, str) and re.fullmatch(VARIABLE, value)):
        advice = "give it as gcsFaultToleranceOptions.redisPassword.valueFrom in overrides"
        return [Problem((flag,), None, f"a command line keeps no secret: {advice}", "redis-password")]
    if not re.fullmatch(_FLAG, flag):
        message = f"{flag!r} is not a flag of ray start: write one without its leading hyphens, as num-cpus"
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

    idle_timeout: Timeout | None = None
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

    drain_timeout: Duration | None = None
    """Time that these workers have to finish their work when their pod has to go. Default: the cluster's
    drainTimeout."""

    env: Env = Field(default_factory=dict)
    """Environment variables of these workers, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further flags of `ray start`, over the derived ones."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod templates of these workers, in Kubernetes' own words; Ray's container is `ray-worker`."""


class WorkerGroupSettings(CheckedSettings):
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
    """GPUs of a worker, or other accelerators: units of `gpuResource`."""

    gpu_resource: GpuResource | None = None
    """The resource of its GPUs: `amd.com/gpu`, `nvidia.com/mig-1g.10gb`. Default: that of the pool, or
    `nvidia.com/gpu`."""

    pool: PoolName | None = None
    """Pool whose nodes run the workers. Default: any node."""

    image: Image | None = None
    """Image of these workers. Default: the cluster's."""

    drain_timeout: Duration | None = None
    """Time that these workers have to finish their work when their pod has to go. Default: the cluster's
    drainTimeout."""

    env: Env = Field(default_factory=dict)
    """Environment variables of these workers, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Flags of `ray start`."""

    labels: Labels = Field(default_factory=dict)
    """Labels of the workers as nodes of Ray (`workerGroupSpecs[].labels`); their pods have them too. From Ray 2.45
    on."""

    idle_timeout: Timeout | None = None
    """Idle time after which a worker of the group is removed. Default: the cluster's idleTimeout."""

    pod_template: PodTemplate = Field(default_factory=dict)
    """Merged over the pod template of these workers, in Kubernetes' own words; Ray's container is `ray-worker`."""

    def problems(self) -> Iterator[Problem]:
        yield from resource_without_gpus(self.gpu_resource, self.gpus)


RAYS_USER = 1000
"""User ID of `ray` in Ray's images, whose group is 100 (ray-project/ray, docker/base-deps/Dockerfile)."""

MOST_ID = 2**31 - 1
"""Largest user ID that Kubernetes accepts (IsValidUserID in k8s.io/apimachinery, pkg/util/validation)."""

ClusterName = Annotated[str, dns_1035_label(53)]
"""KubeRay's limit, so that derived names have at most 63 characters (MaxRayClusterNameLength)."""


class AuthOptions(Settings):
    """Authentication at the cluster's dashboard, jobs and client ports."""

    mode: Literal["token", "disabled"] = "token"
    """`token`: callers show the token in the Secret. `disabled`: everybody who can connect to the ports can run any
    code."""

    secret_name: DnsSubdomain | None = None
    """Secret with the token under the key `auth_token`. Default: KubeRay creates one with the cluster's name."""

    enable_k8s_token_auth: bool | None = Field(default=None, alias="enableK8sTokenAuth")
    """True: callers show a Kubernetes token of an account with the right `ray:write` on RayClusters; from Ray 2.55
    on."""


class NetworkTopologySettings(Settings):
    """The network distance of the nodes of a gang (Volcano's HyperNodes)."""

    mode: Literal["hard", "soft"]
    """`hard`: within a tier, else the gang waits. `soft`: as near as possible."""

    highest_tier_allowed: Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)] | None = None
    """With mode hard: the highest tier that the gang may span. Default: any."""


def _not_root(value: Any) -> Any:
    # A union would report an error for each of its members.
    if value == "image" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_ID):
        return value
    raise ValueError(
        f"{value!r} is not a user that Ray may run as: set a number from 1 on, because 0 is root, or image"
    )


def one_or_more(value: Any) -> Any:
    """Workers of one pool, written without a list."""
    return [value] if isinstance(value, dict | Settings) else value


def _of_a_stack_file(value: Any) -> Any:
    if value is not None:
        raise ValueError("is only read in a stack file: load one, or write what `ray-platform import` makes of it")
    return value


def _unless_converted(schema: dict[str, Any]) -> None:
    """In the JSON Schema: what a launcher file has is not required beside it."""
    converted = [key for key in schema["required"] if key in ("rayVersion", "image")]
    schema["required"] = [key for key in schema["required"] if key not in converted]
    schema |= {"if": {"not": {"required": ["configuration"]}}, "then": {"required": converted}}


class ClusterTemplateSettings(Settings):
    """Head and workers, of a RayCluster or of the cluster that a RayJob or RayService has for itself.

    `workers` are derived from pools; `workerGroups` are configured one by one. A cluster may have both, or only a head.
    """

    model_config = ConfigDict(json_schema_extra=_unless_converted)

    ray_version: Version
    """Version of Ray in the image."""

    image: Image
    """Image of head and workers. Its tag must start with rayVersion, unless verifyImageTag is false."""

    verify_image_tag: bool = True
    """False: rayVersion is not compared with the tag, for an image without a tag or with a custom one."""

    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When a node pulls the image, as in Kubernetes."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in the tenant's namespace to pull the image with."""

    head: HeadSettings = HeadSettings()
    """The head's pod."""

    workers: Annotated[
        tuple[WorkersSettings, ...],
        NotEmpty,
        BeforeValidator(one_or_more, json_schema_input_type=WorkersSettings | tuple[WorkersSettings, ...]),
    ] = Field(default=(), validate_default=False)
    """Workers of one pool, or a list for several pools."""

    worker_groups: tuple[WorkerGroupSettings, ...] = ()
    """Worker groups as in KubeRay, not derived from pools."""

    min_workers: Replicas | None = None
    """Workers that are never scaled down: minReplicas of the only worker group."""

    max_workers: Replicas | None = None
    """Most workers at a time: maxReplicas of the only worker group."""

    initial_workers: Replicas | None = None
    """Initial workers: replicas of the only worker group. The autoscaler changes the number later."""

    autoscaling: bool = True
    """False: each worker group keeps its replicas, because `enableInTreeAutoscaling` stays unset."""

    auto_scaling_mode: Literal["default", "aggressive", "conservative", "disabled"] | None = None
    """How fast workers are added (`autoscalerOptions.upscalingMode`): `conservative`, at most as many at once as there
    are nodes of Ray; `default` and `aggressive`, all at once. `disabled`: `autoscaling: false`. Default: `default`."""

    target_utilization: Annotated[int, Strict(), Field(ge=1, le=100)] | None = None
    """Target utilization in percent of older Ray versions. It sets autoScalingMode: 50 and more is `conservative`, less
    is `default`."""

    idle_timeout: Timeout = "60s"
    """Idle time after which a worker is removed."""

    idle_timeout_minutes: Annotated[int, Strict(), Field(ge=1, le=MOST_SECONDS // 60)] | None = None
    """idleTimeout in whole minutes."""

    drain_timeout: Duration | None = None
    """Time that a worker has to finish its work when its pod has to go: a drained node, an eviction, a preemption. New
    work goes elsewhere meanwhile. `0s`: it ends at once. From Ray 2.57 on. Default: 40s; for a service 60s, or 40s more
    than its longest graceful_shutdown_timeout_s, from Ray 2.60 on."""

    service_account: DnsSubdomain | None = None
    """ServiceAccount of head and workers; it must exist. Default: the tenant's `rayDeployer`, else KubeRay creates one
    for a head with an autoscaler."""

    auth_options: AuthOptions | None = None
    """Authentication. Default: mode `token` from Ray 2.52 on; older versions have none."""

    pod_defaults: Literal["secure", "none"] = "secure"
    """`secure`: pods meet Pod Security `restricted`, have no Kubernetes token that they do not need, and have the
    stack's priority classes. `none`: no defaults are added."""

    run_as_user: Annotated[
        Annotated[int, Strict(), Field(ge=1, le=MOST_ID)] | Literal["image"], BeforeValidator(_not_root)
    ] = RAYS_USER
    """User ID of Ray's containers, 1000 as in Ray's images. `image`: that of the image, or one that OpenShift sets."""

    scheduler: SchedulerName | None = None
    """The scheduler of the cluster. With Kueue `kubernetes` starts it without a queue, also where its tenant has one;
    with Volcano KubeRay gives all clusters to Volcano. Default: the stack's, with Kueue if the cluster has a queue."""

    queue: QueueName | None = None
    """Queue in which the cluster waits. Default: its tenant's. With Volcano a change takes effect at once and does not
    affect running pods; with Kueue it recreates the cluster."""

    gang: Literal["minimum", "all"] = "minimum"
    """The pods that start together or not at all. `minimum`: the head and the minimum workers of each group; the
    autoscaler adds others if there is room. `all`: the head and every worker, for training that needs all of them. A
    cluster that does not scale is `all`."""

    priority_class: DnsSubdomain | None = None
    """PriorityClass that orders the gangs of a queue; with Kueue, a WorkloadPriorityClass. The eviction of running pods
    depends on the pods' own priority. Default: none. A change takes effect at once and does not affect running pods."""

    network_topology: NetworkTopologySettings | None = None
    """Network distance of the gang's nodes. Default: any. With Volcano only. A change recreates the cluster."""

    env: Env = Field(default_factory=dict)
    """Environment variables of head and workers."""

    labels: Labels = Field(default_factory=dict)
    """Labels of the RayCluster and its pods."""

    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Annotations of the RayCluster."""

    volumes: tuple[dict[str, Any], ...] = ()
    """Volumes of head and workers, as in a pod's spec."""

    volume_mounts: tuple[dict[str, Any], ...] = ()
    """Mounts of them in the Ray containers."""

    storage: tuple[StorageMountSettings, ...] = ()
    """Storages of the tenant in the Ray containers of head and all workers."""

    fault_tolerance: bool = False
    """True: the GCS stores its tables in the stack's `redis`, so that actors, jobs and placement groups survive a
    restart of the head. Needs Ray 2.41 or later."""

    tls: TlsSettings | None = None
    """TLS between the cluster's processes; `{}` with an authority that the stack creates. Default: none."""

    overrides: Overrides = Field(default_factory=dict)
    """Merged last into the RayCluster's spec, in KubeRay's syntax: for all fields without a setting here."""

    configuration: Annotated[str | dict[str, Any] | None, AfterValidator(_of_a_stack_file)] = None
    """A file of Ray's cluster launcher (`ray up`): its path from the folder of this file, or its content. The cluster
    is what `ray-platform import` makes of it, with the keys beside this one merged over it as over a base."""

    @property
    def knows_tokens(self) -> bool:
        """Whether this version of Ray can authenticate by token."""
        return version_tuple(self.ray_version) >= version_tuple(FIRST_RAY_WITH_TOKENS)

    @property
    def drains(self) -> bool:
        """Whether this version of Ray drains a node at SIGTERM."""
        return version_tuple(self.ray_version) >= version_tuple(FIRST_RAY_WITH_DRAIN)

    @property
    def drains_by_default(self) -> bool:
        """Whether pods get defaults for a drain."""
        return self.drains and self.pod_defaults != "none"

    @property
    def scales(self) -> bool:
        """Whether the autoscaler adds and removes workers."""
        return self.autoscaling and self.auto_scaling_mode != "disabled"


class StandingClusterSettings(Settings):
    """What tells a RayCluster from others."""

    name: ClusterName
    """Name of the RayCluster; its head Service is `<name>-head-svc`."""

    adopt: bool = False
    """True: `up` adopts a running RayCluster. Afterwards the key can be removed."""


# Pydantic takes the fields of the last base first.
class RayClusterSettings(ClusterTemplateSettings, StandingClusterSettings):
    """A RayCluster: a head, and workers that the autoscaler adds and removes.

    `workers` are derived from pools; `workerGroups` are configured one by one. A cluster may have both, or only a head.
    """

    ready_timeout: Timeout = "10m"
    """Time for which `up` waits for the cluster to be ready. Afterwards it reports why it is not."""

    updates: UpdatesSettings = UpdatesSettings()
    """How an edit is applied to running pods. Default: idle workers are replaced; busy workers and the head stay."""

    idle_termination_options: IdleTerminationSettings | None = None
    """Suspends the cluster when nobody uses it. Default: it runs until it leaves the stack file."""

    ingress: IngressSettings | None = None
    """Dashboard and jobs API with a host name, through the ingress controller. Default: none."""


class OwnedClusterSettings(RayClusterSettings):
    """The RayCluster that a RayJob or RayService has for itself, with its owner's name. KubeRay generates the
    RayCluster's own name, and may replace one by another."""


def cluster_of_owner(template: ClusterTemplateSettings, name: str, label: str) -> OwnedClusterSettings:
    """The RayCluster of a RayJob or RayService: with its owner's name, also in a label, by which it is found."""
    values: dict[str, Any] = {field: getattr(template, field) for field in type(template).model_fields}
    values |= {"name": name, "labels": {**template.labels, label: name}}
    return OwnedClusterSettings.model_construct({"name", *template.model_fields_set}, **values)
