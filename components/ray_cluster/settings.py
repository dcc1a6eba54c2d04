"""Settings of a RayCluster."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from components.idle_termination.settings import IdleTerminationSettings
from components.network.settings import IngressSettings
from components.queues.settings import QueueName
from components.ray_cluster.fragments import Overrides
from components.ray_cluster.node_settings import HeadSettings, WorkerGroupSettings, WorkersSettings
from components.rollout.settings import UpdatesSettings
from components.storage.settings import StorageMountSettings
from components.tls.manifests import TlsSettings
from core.types import (
    MOST_SECONDS,
    DnsSubdomain,
    Duration,
    Env,
    Image,
    LabelKey,
    Labels,
    NotEmpty,
    Replicas,
    Settings,
    Version,
    dns_1035_label,
)
from core.versions import version_tuple
from kuberay.releases import FIRST_RAY_WITH_TOKENS

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


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, dict | WorkersSettings) else value


class ClusterTemplateSettings(Settings):
    """Head and workers, of a RayCluster or of the cluster that a RayJob or RayService has for itself.

    `workers` are derived from pools; `workerGroups` are configured one by one. A cluster may have both, or only a head.
    """

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
        BeforeValidator(_one_or_more, json_schema_input_type=WorkersSettings | tuple[WorkersSettings, ...]),
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

    idle_timeout: Duration = "60s"
    """Idle time after which a worker is removed."""

    idle_timeout_minutes: Annotated[int, Strict(), Field(ge=1, le=MOST_SECONDS // 60)] | None = None
    """idleTimeout in whole minutes."""

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

    @property
    def knows_tokens(self) -> bool:
        """Whether this version of Ray can authenticate by token."""
        return version_tuple(self.ray_version) >= version_tuple(FIRST_RAY_WITH_TOKENS)

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

    ready_timeout: Duration = "10m"
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
