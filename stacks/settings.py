"""All settings of a stack file. `rules` validates the relations between its parts."""

import functools
from typing import Annotated, Any

from pydantic import Field

from components.access.settings import AccessSettings, RayDeployerSettings, RayUsers, Subject
from components.admission_policies.settings import AdmissionPoliciesSettings
from components.capacity.settings import CapacitySettings
from components.network.settings import NetworkSettings, TenantNetworkSettings
from components.operator.settings import OperatorSettings
from components.priority_classes.settings import PriorityClassesSettings
from components.queues.settings import SchedulerSettings, SharedQueueSettings, TenantQueue
from components.ray_cluster.rules import SoundRayCluster
from components.ray_cluster.settings import ClusterName, RayClusterSettings
from components.redis.settings import RedisSettings
from components.tenant.settings import (
    DEFAULT_LIMITS,
    LimitSettings,
    NamespaceLabels,
    QuotaSettings,
)
from core.images import ImagesSettings, TenantImagesSettings
from core.nodes import NodePool
from core.pod_security import PodSecurityLevel
from core.types import DnsLabel, LabelValue, Settings, StackName, dns_1035_label
from kuberay.names import derived
from policies.configuration import PoliciesSettings

from .environment.settings import SplitSettings

LONGEST_TENANT_NAME = 40
"""Characters. Leaves room for the suffixes of its resources' names."""


class KubernetesSettings(Settings):
    """Which cluster the stack is for."""

    context: str | None = Field(default=None, min_length=1)
    """Context of the kubeconfig. Default: its current one."""


class PlatformReference(Settings):
    """The stack that the platform belongs to: operator, namespaces, quotas, access and policies of tenants.

    With it this stack makes RayClusters and what belongs to them, and reads nothing outside its tenants' namespaces.
    """

    stack: StackName | None = None
    """Name of that stack, `organization/ray-platform/prod`, whose outputs this one is held against in previews and
    updates. Default: none; what is there is taken from this file."""


class TenantSettings(Settings):
    """A team: a namespace of its own, with its RayClusters in it."""

    name: Annotated[str, dns_1035_label(LONGEST_TENANT_NAME)]
    """Name of the tenant, and of its namespace where none is set."""

    namespace: DnsLabel | None = None
    """Namespace that is made for the tenant. Default: its name."""

    create_namespace: bool = True
    """False: the namespace is there already. The stack uses it as it is, and leaves it there when it is destroyed."""

    owner: LabelValue | None = Field(default=None, min_length=1)
    """Who answers for the tenant: label `ray-platform/owner` of the namespace."""

    cost_center: LabelValue | None = Field(default=None, min_length=1)
    """Who pays: label `ray-platform/cost-center` of the namespace."""

    labels: NamespaceLabels = Field(default_factory=dict)
    """Further labels of the namespace."""

    pod_security: PodSecurityLevel = "restricted"
    """Level of Kubernetes' Pod Security Standards that the namespace enforces, audits and warns of."""

    quota: QuotaSettings | None = None
    """The most that the tenant may have at a time. Default: no limit."""

    limits: LimitSettings | None = None
    """What containers get that do not say it, and must keep to. Default: with a quota, 100m CPU and 512Mi of memory for
    those that say none; without, nothing. `{}`: nothing."""

    allow_delete: bool = False
    """True: the tenant may be removed while RayClusters run in its namespace, once an `up` has seen this."""

    admins: tuple[Subject, ...] = ()
    """Who manages the tenant's RayClusters: `group:NAME`, `user:NAME` or `serviceAccount:NAMESPACE/NAME`."""

    users: RayUsers = ()
    """Who uses them: as `admins`, or a mapping that says which clusters, and whether RayJobs may be made."""

    ray_deployer: RayDeployerSettings | None = None
    """An account that may make pods, Deployments, Services and RayClusters, which the tenant's clusters run as.
    Default: none; KubeRay makes an account for the head of a cluster that scales, and workers need none."""

    network: TenantNetworkSettings = TenantNetworkSettings()
    """Who reaches the tenant's RayClusters, and what its pods reach."""

    queue: TenantQueue | None = None
    """Queue that the tenant's RayClusters wait in, unless they name another: the name of one in `queues`, or a mapping
    for one of its own. Default: the scheduler's default one, which everybody may use."""

    clusters: tuple[SoundRayCluster, ...] = ()
    """The tenant's RayClusters."""

    images: TenantImagesSettings = TenantImagesSettings()
    """Which images the tenant's RayClusters may have, and how they are pulled."""

    cluster_names: tuple[ClusterName, ...] = ()
    """Names of RayClusters that a stack of the tenant's own makes; `admins`, `users`, `network` hold for them, too."""

    @property
    def namespace_name(self) -> str:
        """The namespace's name."""
        return self.namespace or self.name

    @property
    def limits_in_force(self) -> LimitSettings | None:
        """The limits that are set, or the default ones of a quota."""
        return DEFAULT_LIMITS if self.limits is None and self.quota else self.limits

    def service_account(self, cluster: RayClusterSettings) -> str | None:
        """The ServiceAccount that the stack creates for a cluster's pods; None if they need none.

        Pods need one if they authenticate each other with tokens of Kubernetes. It has the name that KubeRay would give
        the head's account, so that KubeRay binds it to the autoscaler's Role.
        """
        if self.ray_deployer:
            return self.ray_deployer.service_account
        return derived(cluster.name) if cluster.auth_options and cluster.auth_options.enable_k8s_token_auth else None


class StackSettings(Settings):
    """All that a stack file may say under `ray-platform:`."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    operator: OperatorSettings = OperatorSettings()
    access: AccessSettings = AccessSettings()
    network: NetworkSettings = NetworkSettings()

    priority_classes: PriorityClassesSettings = PriorityClassesSettings()
    """Which pods go first where there is no room for all."""

    images: ImagesSettings = ImagesSettings()

    scheduler: SchedulerSettings | None = None
    """What starts gangs whole and serves queues. Default: Kubernetes' own scheduler, which knows neither."""

    queues: tuple[SharedQueueSettings, ...] = ()
    """Queues that tenants share. One of a tenant's own is said there."""

    redis: RedisSettings | None = None
    """Where RayClusters with `faultTolerance` keep what they know. Default: nowhere, and no cluster may have it."""

    policies: PoliciesSettings = PoliciesSettings()
    """What the policy pack makes of this stack. It goes before the pack's own configuration, rule by rule."""

    split: SplitSettings | None = None
    """That the environment is several Pulumi stacks, previewed and updated as one by `python -m stacks`. Default: it is
    one stack."""

    platform: PlatformReference | None = None
    """That the platform belongs to another stack, and this one has RayClusters alone. Default: it is this stack's."""

    nodes: tuple[NodePool, ...] = ()
    """Pools of nodes that the cluster has. Workers are cut to them; a rehearsal simulates them."""

    capacity: CapacitySettings = CapacitySettings()

    tenants: tuple[TenantSettings, ...] = ()
    """The teams."""

    admission_policies: AdmissionPoliciesSettings | None = None
    """Rules that the API server itself enforces, whoever makes the object. Default: none."""

    @functools.cached_property
    def kept(self) -> dict[Any, Any]:
        """The cache of results derived from these settings (`once`)."""
        return {}

    @property
    def operator_in_force(self) -> OperatorSettings:
        """`operator`, with the values that follow from the stack's scheduler."""
        if self.scheduler and self.scheduler.volcano:
            return self.operator.model_copy(update={"batch_scheduler": "volcano"})
        return self.operator

    @property
    def priorities(self) -> PriorityClassesSettings:
        """`priorityClasses`, with the values that follow from how the operator is installed."""
        return self.priority_classes.beside(self.operator.install)
