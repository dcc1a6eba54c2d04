"""What a stack file may say about a RayCluster."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ..nodes import NodePool
from ..types import (
    Dns1035Label,
    DnsSubdomain,
    Duration,
    Env,
    Image,
    LabelKey,
    Labels,
    NotEmpty,
    Quantity,
    QuantityOrZero,
    Settings,
    Version,
    dns_1035_label,
    image_tag,
    version_tuple,
)

FIRST_RAY_WITH_TOKENS = "2.52.0"
"""Ray authenticates by token since this version; KubeRay refuses `authOptions.mode: token` for an older one
(ray-operator/controllers/ray/utils/validation.go)."""

ClusterName = Annotated[str, dns_1035_label(53)]
"""KubeRay's limit, so that names derived from it keep within 63 characters (MaxRayClusterNameLength)."""

RayStartParams = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], str]
"""Flags of `ray start` without the leading hyphens. All values are text: `num-cpus: "4"`."""


class AuthOptions(Settings):
    """Who may use the cluster's dashboard, jobs and client ports."""

    mode: Literal["token", "disabled"] = "token"
    """`token`: callers show the token in the Secret. `disabled`: whoever reaches the ports may run anything."""

    secret_name: DnsSubdomain | None = None
    """Secret with the token under the key `auth_token`. Default: KubeRay makes one, named as the cluster."""


class HeadSettings(Settings):
    """The head: it runs Ray's own processes and the autoscaler, and no task, so it has 0 CPUs and 0 GPUs for these."""

    cpu: Quantity = "2"
    """CPUs of the head's container."""

    memory: Quantity = "16Gi"
    """Memory of the head's container. A head that runs out of it takes the cluster down."""

    pool: Dns1035Label | None = None
    """Pool whose nodes run the head; it must have labels or a gpuProduct to tell it by. Default: any node."""

    env: Env = Field(default_factory=dict)
    """Environment variables of the head alone, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further flags of `ray start`, over the derived ones."""


class Variant(Settings):
    """One size of worker, a worker group. What is not said is derived from the pool."""

    gpus: int = Field(ge=0)
    """GPUs of a worker."""

    name: Dns1035Label | None = None
    """Name of the worker group. Default: `<pool>-<gpus>gpu`, or `<pool>-cpu`."""

    cpu: Quantity | None = None
    """CPUs of a worker. Default: its GPUs' share of the node less the reserve, rounded down."""

    memory: Quantity | None = None
    """Memory of a worker. Default: its GPUs' share of the node less the reserve, rounded down to Gi."""

    min_replicas: int = Field(default=0, ge=0)
    """Workers that are never scaled down."""

    max_replicas: int | None = Field(default=None, ge=0)
    """Most workers at a time. Default: the pool's nodes for a worker of a whole node, else 2."""


class Reserve(Settings):
    """What of a node is left to daemons, system pods and perhaps a head."""

    cpu: QuantityOrZero | None = None
    """Default: a sixteenth of the node's CPUs."""

    memory: QuantityOrZero | None = None
    """Default: a sixteenth of the node's memory."""


class WorkersSettings(Settings):
    """Workers on one pool. Their sizes double from one GPU to the whole node, so that a task finds a worker that fits
    and leaves few GPUs idle; a pool without GPUs has one size, a whole node."""

    pool: Dns1035Label
    """Name of the pool in `nodes`."""

    variants: Annotated[tuple[Variant, ...], NotEmpty] | None = None
    """The sizes, in place of the doubling ones."""

    reserve: Reserve = Reserve()
    """What derived sizes leave free on each node."""

    env: Env = Field(default_factory=dict)
    """Environment variables of these workers, over those of the cluster."""

    ray_start_params: RayStartParams = Field(default_factory=dict)
    """Further flags of `ray start`, over the derived ones."""


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, dict | WorkersSettings) else value


class RayClusterSettings(Settings):
    """A RayCluster: a head, and workers that the autoscaler adds and takes away."""

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

    workers: Annotated[
        tuple[WorkersSettings, ...],
        NotEmpty,
        BeforeValidator(_one_or_more, json_schema_input_type=WorkersSettings | tuple[WorkersSettings, ...]),
    ]
    """Workers of one pool, or a list of several pools'."""

    idle_timeout: Duration = "60s"
    """A worker that nothing uses for so long is taken away."""

    ready_timeout: Duration = "10m"
    """So long `up` waits for the cluster to be ready before it says why it is not."""

    service_account: DnsSubdomain | None = None
    """ServiceAccount of head and workers; it must exist. Default: the tenant's RayDeployer."""

    auth_options: AuthOptions | None = None
    """Default: mode `token` from Ray 2.52 on; older versions have none."""

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

    overrides: dict[str, Any] = Field(default_factory=dict)
    """Merged last into the RayCluster's spec, in KubeRay's own words: whatever has no setting here."""

    @model_validator(mode="after")
    def _image_has_the_version(self) -> Self:
        if not self.verify_image_tag:
            return self
        tag = image_tag(self.image)
        found = re.match(r"\d+\.\d+\.\d+(?![0-9])", tag or "")
        if found is None:
            raise ValueError(
                f"the version of Ray in image {self.image!r} cannot be told by its tag: use a tag that starts with "
                f"{self.ray_version}, or set verifyImageTag to false if it does have Ray {self.ray_version}"
            )
        if found[0] != self.ray_version:
            raise ValueError(
                f"rayVersion is {self.ray_version!r} but image {self.image!r} has Ray {found[0]}: "
                f"set rayVersion to {found[0]}, or use the image of {self.ray_version}"
            )
        return self

    @model_validator(mode="after")
    def _ray_knows_tokens(self) -> Self:
        wanted = self.auth_options and self.auth_options.mode == "token"
        if wanted and not self.knows_tokens:
            raise ValueError(
                f"authOptions.mode 'token' needs Ray {FIRST_RAY_WITH_TOKENS} or later, and rayVersion is "
                f"{self.ray_version!r}: raise rayVersion, or set authOptions.mode to disabled"
            )
        return self

    @property
    def knows_tokens(self) -> bool:
        """Whether this version of Ray can authenticate by token."""
        return version_tuple(self.ray_version) >= version_tuple(FIRST_RAY_WITH_TOKENS)


def pool_named(pools: tuple[NodePool, ...], name: str) -> NodePool:
    """The pool of that name. Raises ValueError, with the names there are, where there is none."""
    for pool in pools:
        if pool.pool == name:
            return pool
    names = ", ".join(pool.pool for pool in pools) or "none"
    raise ValueError(f"pool {name!r} is not in nodes: use one of {names}, or add it there")
