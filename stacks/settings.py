"""All settings of a stack file, and a cache for what is derived from them.

`rules` validates the relations between its parts.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, TypeVar, TypeVarTuple

from pydantic import Field, Strict

from components.access.personas import AccessSettings, RayDeployerSettings, RayUsers, Subject
from components.admission_policies.settings import AdmissionPoliciesSettings
from components.capacity.limits import CapacitySettings
from components.network.settings import NetworkSettings, TenantNetworkSettings
from components.operator.settings import OperatorSettings
from components.priority_classes.settings import PriorityClassesSettings
from components.queues.settings import SchedulerSettings, SharedQueueSettings, TenantQueue
from components.ray_cluster.rules import ValidRayCluster
from components.ray_cluster.settings import ClusterName, RayClusterSettings
from components.ray_job.rules import ValidRayJob
from components.redis.settings import RedisSettings
from components.storage.settings import StorageSettings
from components.tenant.settings import (
    DEFAULT_LIMITS,
    LimitSettings,
    NamespaceLabels,
    QuotaSettings,
)
from core.images import ImagesSettings, TenantImagesSettings
from core.nodes import NodePool
from core.pods import PodSecurityLevel
from core.problems import Path
from core.types import DnsLabel, LabelValue, Settings, StackName, dns_1035_label
from kuberay.formats import derived
from policies.configuration import PoliciesSettings

MOST_STACKS = 200
"""Each stack's program reads the whole stack file, so stacks for one or two tenants are not worth it."""


class SplitSettings(Settings):
    """Several Pulumi stacks instead of one: one for the platform, and one for each group of tenants.

    Pulumi writes the whole state of a stack at each step. So an update of one stack costs more per tenant the more
    tenants there are.
    """

    stacks: Annotated[int, Strict(), Field(ge=1, le=MOST_STACKS)]
    """Number of groups of tenants. The name of a tenant's namespace decides its group, so that adding or removing
    tenants moves no other."""


LONGEST_TENANT_NAME = 40
"""Characters. Leaves room for the suffixes of its resources' names."""


class KubernetesSettings(Settings):
    """Which cluster the stack is for."""

    context: str | None = Field(default=None, min_length=1)
    """Context of the kubeconfig. Default: its current one."""


class PlatformReference(Settings):
    """The stack that has the platform: operator, and the tenants' namespaces, quotas, access and policies.

    With it this stack only creates RayClusters and their own objects, and reads nothing outside its tenants'
    namespaces.
    """

    stack: StackName | None = None
    """Name of that stack, `organization/ray-platform/prod`. Previews and updates validate this stack against its
    outputs. Default: none; this file describes the existing platform."""


class TenantSettings(Settings):
    """A team: a namespace of its own, with its RayClusters in it."""

    IN_ITS_OWN_STACK: ClassVar = frozenset({"name", "namespace", "images", "clusters", "queue", "storage"})
    """Keys that a tenant's own stack may have; all others belong to the platform's stack."""

    name: Annotated[str, dns_1035_label(LONGEST_TENANT_NAME)]
    """Name of the tenant, and of its namespace if `namespace` is not set."""

    namespace: DnsLabel | None = None
    """Namespace that is created for the tenant. Default: its name."""

    create_namespace: bool = True
    """False: the namespace exists already. The stack does not change it, and does not delete it with the stack."""

    owner: LabelValue | None = Field(default=None, min_length=1)
    """Owner of the tenant: label `ray-platform/owner` of the namespace."""

    cost_center: LabelValue | None = Field(default=None, min_length=1)
    """Who pays for the tenant: label `ray-platform/cost-center` of the namespace."""

    labels: NamespaceLabels = Field(default_factory=dict)
    """Further labels of the namespace."""

    pod_security: PodSecurityLevel = "restricted"
    """Level of Kubernetes' Pod Security Standards that the namespace enforces, audits and warns of."""

    quota: QuotaSettings | None = None
    """The most that the tenant may use at a time. Default: no limit."""

    limits: LimitSettings | None = None
    """Default and largest resources of containers. Default: with a quota, 100m CPU and 512Mi of memory for containers
    that set none; without a quota, nothing. `{}`: nothing."""

    allow_delete: bool = False
    """True: the tenant may be removed while RayClusters run in its namespace, after an `up` with this setting."""

    admins: tuple[Subject, ...] = ()
    """Who manages the tenant's RayClusters: `group:NAME`, `user:NAME` or `serviceAccount:NAMESPACE/NAME`."""

    users: RayUsers = ()
    """Who uses them: as `admins`, or a mapping with the RayClusters, and whether RayJobs are allowed."""

    ray_deployer: RayDeployerSettings | None = None
    """A ServiceAccount that may create pods, Deployments, Services and RayClusters. The tenant's clusters run as it.
    Default: none; KubeRay creates an account for the head of a cluster with autoscaling, and workers need none."""

    network: TenantNetworkSettings = TenantNetworkSettings()
    """Who may connect to the tenant's RayClusters, and where its pods may connect to."""

    queue: TenantQueue | None = None
    """Queue that the tenant's RayClusters wait in, unless they name another: the name of one in `queues`, or a mapping
    for one of its own. Default: the scheduler's default queue, which all may use."""

    storage: tuple[StorageSettings, ...] = ()
    """Storage that the tenant's RayClusters share, for models, data and results."""

    clusters: tuple[ValidRayCluster, ...] = ()
    """The tenant's RayClusters."""

    jobs: tuple[ValidRayJob, ...] = ()
    """The tenant's RayJobs."""

    images: TenantImagesSettings = TenantImagesSettings()
    """Which images the tenant's RayClusters may use, and how they are pulled."""

    cluster_names: tuple[ClusterName, ...] = ()
    """Names of RayClusters that a separate stack of the tenant creates; `admins`, `users`, `network` apply to them,
    too."""

    @property
    def placed_clusters(self) -> Iterator[tuple[Path, RayClusterSettings]]:
        """`all_clusters`, each with its place in the tenant's settings."""
        yield from ((("clusters", at), cluster) for at, cluster in enumerate(self.clusters))
        for at, job in enumerate(self.jobs):
            if job.own_cluster:
                yield ("jobs", at, "cluster"), job.own_cluster

    @functools.cached_property
    def all_clusters(self) -> tuple[RayClusterSettings, ...]:
        """The tenant's RayClusters, and those that its RayJobs have for themselves, with the names of the RayJobs."""
        return tuple(cluster for _, cluster in self.placed_clusters)

    @property
    def namespace_name(self) -> str:
        """The namespace's name."""
        return self.namespace or self.name

    @property
    def level_in_force(self) -> PodSecurityLevel:
        """The Pod Security level of the namespace; of one that exists already it is not known, so it counts as none."""
        return self.pod_security if self.create_namespace else "privileged"

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
    """All settings of a stack file under `ray-platform:`."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    operator: OperatorSettings = OperatorSettings()
    access: AccessSettings = AccessSettings()
    network: NetworkSettings = NetworkSettings()

    priority_classes: PriorityClassesSettings = PriorityClassesSettings()
    """Which pods are scheduled first if there is no room for all."""

    images: ImagesSettings = ImagesSettings()

    scheduler: SchedulerSettings | None = None
    """The scheduler of gangs and queues. Default: Kubernetes' own scheduler, which supports neither."""

    queues: tuple[SharedQueueSettings, ...] = ()
    """Queues that tenants share. A tenant's own queue is set at the tenant."""

    redis: RedisSettings | None = None
    """Where RayClusters with `faultTolerance` store the tables of their GCS. Default: nowhere, and no cluster may have
    it."""

    policies: PoliciesSettings = PoliciesSettings()
    """How the policy pack treats this stack. It overrides the pack's own configuration, rule by rule."""

    split: SplitSettings | None = None
    """Splits the environment into several Pulumi stacks, which `python -m stacks` previews and updates as one. Default:
    it is one stack."""

    platform: PlatformReference | None = None
    """Set if the platform belongs to another stack, and this one only has RayClusters. Default: it is this stack's."""

    nodes: tuple[NodePool, ...] = ()
    """Pools of nodes in the cluster. Workers are cut to them; a rehearsal simulates them."""

    capacity: CapacitySettings = CapacitySettings()

    tenants: tuple[TenantSettings, ...] = ()
    """The teams."""

    admission_policies: AdmissionPoliciesSettings | None = None
    """Rules that the API server itself enforces, whoever creates the object. Default: none."""

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


Parts = TypeVarTuple("Parts")
Result = TypeVar("Result")


def once(function: Callable[[StackSettings, *Parts], Result]) -> Callable[[StackSettings, *Parts], Result]:
    """Caches the result of a function of a stack, or of a stack and some of its tenants and RayClusters.

    All callers get the same object: none of them may change it.
    """

    @functools.wraps(function)
    def kept(stack: StackSettings, *parts: *Parts) -> Result:
        # Settings have no hash. An id is unique while its object lives, and the cache keeps a reference to the object.
        key = (function, id(stack), *map(id, parts))
        if key not in stack.kept:
            stack.kept[key] = function(stack, *parts), stack, parts
        result: Result = stack.kept[key][0]
        return result

    return kept
