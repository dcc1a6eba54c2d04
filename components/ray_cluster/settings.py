"""What a stack file may say about a RayCluster."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

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
    version_tuple,
)

from ..network.settings import IngressSettings
from ..queues.settings import QueueName
from ..rollout.settings import UpdatesSettings
from ..tls.settings import TlsSettings
from .fragments import Overrides
from .node_settings import HeadSettings, WorkerGroupSettings, WorkersSettings

FIRST_RAY_WITH_TOKENS = "2.52.0"
"""Ray authenticates by token since this version; KubeRay refuses `authOptions.mode: token` for an older one
(ray-operator/controllers/ray/utils/validation.go)."""

RAYS_USER = 1000
"""Number of the user `ray` in Ray's images, whose group is 100 (ray-project/ray, docker/base-deps/Dockerfile)."""

MOST_ID = 2**31 - 1
"""Greatest number of a user that Kubernetes takes (IsValidUserID in k8s.io/apimachinery, pkg/util/validation)."""

ClusterName = Annotated[str, dns_1035_label(53)]
"""KubeRay's limit, so that names derived from it keep within 63 characters (MaxRayClusterNameLength)."""


class AuthOptions(Settings):
    """Who may use the cluster's dashboard, jobs and client ports."""

    mode: Literal["token", "disabled"] = "token"
    """`token`: callers show the token in the Secret. `disabled`: whoever reaches the ports may run anything."""

    secret_name: DnsSubdomain | None = None
    """Secret with the token under the key `auth_token`. Default: KubeRay makes one, named as the cluster."""

    enable_k8s_token_auth: bool | None = Field(default=None, alias="enableK8sTokenAuth")
    """True: callers show a token of Kubernetes, whose account may `ray:write` RayClusters; from Ray 2.55 on."""


class NetworkTopologySettings(Settings):
    """How near to each other, in the network, the nodes of a gang are (Volcano's HyperNodes)."""

    mode: Literal["hard", "soft"]
    """`hard`: within a tier, or the gang waits. `soft`: as near as there is room."""

    highest_tier_allowed: Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)] | None = None
    """With mode hard: the highest tier that the gang may span. Default: any."""


def _not_root(value: Any) -> Any:
    # A union would say what is wrong once for each of its parts.
    if value == "image" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_ID):
        return value
    raise ValueError(f"{value!r} is no user that Ray may run as: give a number from 1 on, which is not root, or image")


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, dict | WorkersSettings) else value


class RayClusterSettings(Settings):
    """A RayCluster: a head, and workers that the autoscaler adds and takes away.

    `workers` are cut from pools; `workerGroups` are said one by one. A cluster may have both, or none: a head alone.
    """

    name: ClusterName
    """Name of the RayCluster; its head Service is `<name>-head-svc`."""

    adopt: bool = False
    """True: the RayCluster runs already, and `up` takes it in. Afterwards the key may be left out."""

    ray_version: Version
    """Version of Ray in the image."""

    image: Image
    """Image of head and workers. Its tag must start with rayVersion, unless verifyImageTag is false."""

    verify_image_tag: bool = True
    """False: rayVersion is taken at its word, for an image without a tag or with one of its own making."""

    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When a node pulls the image, as Kubernetes has it."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in the tenant's namespace to pull the image with."""

    head: HeadSettings = HeadSettings()
    """The head's pod."""

    workers: Annotated[
        tuple[WorkersSettings, ...],
        NotEmpty,
        BeforeValidator(_one_or_more, json_schema_input_type=WorkersSettings | tuple[WorkersSettings, ...]),
    ] = Field(default=(), validate_default=False)
    """Workers of one pool, or a list of several pools'."""

    worker_groups: tuple[WorkerGroupSettings, ...] = ()
    """Worker groups that are cut from no pool, as KubeRay has them."""

    min_workers: Replicas | None = None
    """Workers that are never scaled down: minReplicas of the only worker group."""

    max_workers: Replicas | None = None
    """Most workers at a time: maxReplicas of the only worker group."""

    initial_workers: Replicas | None = None
    """Workers at first: replicas of the only worker group. The autoscaler adds and takes away from there."""

    autoscaling: bool = True
    """False: each worker group keeps its replicas, because `enableInTreeAutoscaling` stays unset."""

    auto_scaling_mode: Literal["default", "aggressive", "conservative", "disabled"] | None = None
    """How fast workers are added (`autoscalerOptions.upscalingMode`): `conservative`, at most as many at once as there
    are nodes of Ray; `default` and `aggressive`, all at once. `disabled`: `autoscaling: false`. Default: `default`."""

    target_utilization: Annotated[int, Strict(), Field(ge=1, le=100)] | None = None
    """Percentage of use that scaling aimed at in older versions of Ray; another way to say autoScalingMode: 50 and more
    is `conservative`, less is `default`."""

    idle_timeout: Duration = "60s"
    """A worker that nothing uses for so long is taken away."""

    idle_timeout_minutes: Annotated[int, Strict(), Field(ge=1, le=MOST_SECONDS // 60)] | None = None
    """idleTimeout in whole minutes."""

    ready_timeout: Duration = "10m"
    """So long `up` waits for the cluster to be ready before it says why it is not."""

    updates: UpdatesSettings = UpdatesSettings()
    """How an edit reaches pods that run already. Default: workers that are idle are replaced, busy ones and the head
    are left."""

    ingress: IngressSettings | None = None
    """The dashboard and jobs API under a name, through the ingress controller. Default: none."""

    service_account: DnsSubdomain | None = None
    """ServiceAccount of head and workers; it must exist. Default: the tenant's `rayDeployer`, else KubeRay makes one
    for a head that scales."""

    auth_options: AuthOptions | None = None
    """Default: mode `token` from Ray 2.52 on; older versions have none."""

    pod_defaults: Literal["secure", "none"] = "secure"
    """`secure`: pods get what Pod Security `restricted` asks for, no token of Kubernetes that they do not need, and the
    stack's priority classes. `none`: nothing is added to what is said."""

    run_as_user: Annotated[
        Annotated[int, Strict(), Field(ge=1, le=MOST_ID)] | Literal["image"], BeforeValidator(_not_root)
    ] = RAYS_USER
    """User that Ray's containers run as, 1000 as in Ray's images. `image`: the image's own, or one that OpenShift
    gives."""

    fault_tolerance: bool = False
    """True: what the GCS knows is kept in the stack's `redis`, so that actors, jobs and placement groups outlive a
    restart of the head. Needs Ray 2.41 or later."""

    tls: TlsSettings | None = None
    """TLS between the cluster's processes; `{}` with an authority that the stack makes. Default: none."""

    queue: QueueName | None = None
    """Queue that the cluster waits in. Default: its tenant's. With Volcano a change takes effect at once, and stops
    nothing; with Kueue it makes the cluster anew."""

    gang: Literal["minimum", "all"] = "minimum"
    """What starts together or not at all. `minimum`: the head and the least workers of each group; the autoscaler's
    further ones come as there is room. `all`: the head and every worker, for training that needs all. A cluster that
    does not scale is `all`."""

    priority_class: DnsSubdomain | None = None
    """PriorityClass by which gangs of a queue go before others; with Kueue, a WorkloadPriorityClass. What may be taken
    from running pods goes by the pods' own. Default: none. A change takes effect at once, and stops nothing."""

    network_topology: NetworkTopologySettings | None = None
    """Default: anywhere. With Volcano only. A change makes the cluster anew."""

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

    overrides: Overrides = Field(default_factory=dict)
    """Merged last into the RayCluster's spec, in KubeRay's own words: whatever has no setting here."""

    @property
    def knows_tokens(self) -> bool:
        """Whether this version of Ray can authenticate by token."""
        return version_tuple(self.ray_version) >= version_tuple(FIRST_RAY_WITH_TOKENS)

    @property
    def scales(self) -> bool:
        """Whether the autoscaler adds and takes away workers."""
        return self.autoscaling and self.auto_scaling_mode != "disabled"
