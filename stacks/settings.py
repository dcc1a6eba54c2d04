"""All settings of a stack file. `rules` validates the relations between its parts."""

import functools
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, Strict

from components.access.personas import AccessSettings, RayDeployerSettings, RayUsers, Subject
from components.admission_policies.settings import AdmissionPoliciesSettings
from components.capacity.limits import CapacitySettings
from components.cml.settings import CmlSettings, Encrypted
from components.external_cluster.settings import ExternalClusterSettings
from components.job_template.settings import JobTemplateSettings, ValidJobTemplate
from components.logs.settings import LogsSettings
from components.monitoring.settings import MonitoringSettings
from components.network.settings import NetworkSettings, TenantNetworkSettings
from components.operator.settings import OperatorSettings
from components.priority_classes.settings import PriorityClassesSettings
from components.queues.settings import SchedulerNames, SchedulerSettings, SharedQueueSettings, TenantQueue
from components.ray_cluster.rules import ValidRayCluster
from components.ray_cluster.settings import ClusterName, RayClusterSettings
from components.ray_job.rules import ValidRayJob
from components.ray_job.settings import JobName, RayJobSettings
from components.ray_service.rules import ValidRayService
from components.ray_service.settings import ServiceName
from components.redis.settings import RedisSettings
from components.remote_job.settings import RemoteClusterSettings, RemoteJobSettings
from components.run_history.settings import RunHistorySettings
from components.storage.settings import StorageSettings
from components.tenant.settings import DEFAULT_LIMITS, LimitSettings, NamespaceLabels, QuotaSettings
from core.images import ImagesSettings, TenantImagesSettings
from core.nodes import NodePool
from core.pods import PodSecurityLevel
from core.problems import Path
from core.types import DnsLabel, LabelKey, LabelValue, Paths, Settings, StackName, Uid, dns_1035_label
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


def _without_blanks(text: str) -> str:
    if text and not text.strip():
        raise ValueError(
            f"{text!r} has blanks alone: write the context's name, or leave the key out for the current one"
        )
    if text != text.strip():
        raise ValueError(f"{text!r} has blanks around it, and no context is named so: write {text.strip()!r}")
    return text


class KubernetesSettings(Settings):
    """Which cluster the stack is for."""

    context: Annotated[str, AfterValidator(_without_blanks)] | None = Field(default=None, min_length=1)
    """Context of the kubeconfig. Default: its current one."""

    cluster: Uid | None = None
    """UID of the cluster's namespace kube-system: another cluster is refused. Default: that of the first update."""


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

    IN_ITS_OWN_STACK: ClassVar = frozenset(
        {"name", "namespace", "images", "clusters", "jobs", "services", "queue", "storage"}
    )
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
    for one of its own. Default: Volcano's queue `default`, which all may use; with Kueue none, and no wait."""

    scheduler: SchedulerNames | None = None
    """Which schedulers the tenant's RayClusters may use, one or a list: `kubernetes` and the stack's. The API server
    refuses others, and a RayCluster chooses with its own `scheduler`. Default: all."""

    storage: tuple[StorageSettings, ...] = ()
    """Storage that the tenant's RayClusters share, for models, data and results."""

    clusters: tuple[ValidRayCluster, ...] = ()
    """The tenant's RayClusters."""

    jobs: tuple[ValidRayJob, ...] = ()
    """The tenant's RayJobs."""

    services: tuple[ValidRayService, ...] = ()
    """The tenant's RayServices."""

    pod_annotations: tuple[LabelKey, ...] = ()
    """Annotations that pods of the tenant's own RayClusters may have besides harmless ones, with any value. An
    annotation may give a pod an address, a network or an identity of others. Default: none."""

    job_templates: tuple[ValidJobTemplate, ...] = ()
    """Vetted jobs that the tenant's users run, with arguments, when they need them."""

    run_history: RunHistorySettings | None = None
    """Records of the tenant's RayJobs that outlive their clusters. Default: none."""

    external_clusters: tuple[ExternalClusterSettings, ...] = ()
    """Ray clusters that exist already, on which the tenant's jobs may run."""

    images: TenantImagesSettings = TenantImagesSettings()
    """Which images the tenant's RayClusters may use, and how they are pulled."""

    cluster_names: tuple[ClusterName, ...] = ()
    """Names of RayClusters that a separate stack of the tenant creates; `admins`, `users`, `network` apply to them,
    too."""

    job_names: tuple[JobName, ...] = ()
    """Names of RayJobs with a cluster of their own that a separate stack of the tenant creates; `admins`, `network`
    apply to them, too."""

    service_names: tuple[ServiceName, ...] = ()
    """Names of RayServices that it creates; `admins`, `network` apply to them, too."""

    @property
    def placed_clusters(self) -> Iterator[tuple[Path, RayClusterSettings]]:
        """`all_clusters`, each with its place in the tenant's settings."""
        yield from ((("clusters", at), cluster) for at, cluster in enumerate(self.clusters))
        for place, job in self.placed_jobs:
            if job.own_cluster:
                yield (*place, "cluster"), job.own_cluster
        for at, service in enumerate(self.services):
            yield ("services", at, "cluster"), service.own_cluster

    @property
    def placed_jobs(self) -> Iterator[tuple[Path, RayJobSettings]]:
        """The tenant's RayJobs, and its job templates as such, each with its place in the tenant's settings."""
        yield from ((("jobs", at), job) for at, job in enumerate(self.jobs))
        yield from ((("jobTemplates", at), template.job) for at, template in enumerate(self.job_templates))

    @property
    def placed_sizes(self) -> Iterator[tuple[Path, JobTemplateSettings, str, RayJobSettings]]:
        """The sizes of its job templates as RayJobs, each with the template, its name, and the template's place."""
        for at, template in enumerate(self.job_templates):
            for size, job in template.sized_jobs.items():
                yield ("jobTemplates", at), template, size, job

    @functools.cached_property
    def all_clusters(self) -> tuple[RayClusterSettings, ...]:
        """The tenant's RayClusters, and those of its RayJobs, job templates and RayServices with the names of these."""
        return tuple(cluster for _, cluster in self.placed_clusters)

    @functools.cached_property
    def planned_clusters(self) -> tuple[RayClusterSettings, ...]:
        """`all_clusters`, without those of job templates: nobody knows how many of them run at once."""
        of_jobs = (job.own_cluster for job in self.jobs if job.own_cluster)
        return (*self.clusters, *of_jobs, *(service.own_cluster for service in self.services))

    def cluster_of(self, job: RayJobSettings) -> RayClusterSettings | None:
        """The RayCluster of a job, its own or the selected one; None if the stack does not know it."""
        selector = job.cluster_selector
        return job.own_cluster or next(
            (each for each in self.clusters if selector and each.name == selector.cluster), None
        )

    @property
    def namespace_name(self) -> str:
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

    extends: Paths = ()
    """The bases that this file is merged over, by their paths from its folder; of several, a later one wins."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    operator: OperatorSettings = OperatorSettings()
    access: AccessSettings = AccessSettings()
    network: NetworkSettings = NetworkSettings()
    logs: LogsSettings | None = None

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
    """Splits the environment into several Pulumi stacks, which `ray-platform` previews and updates as one. Default:
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

    monitoring: MonitoringSettings | None = None
    """Metrics and alerts. Default: none."""

    cml: CmlSettings | None = None
    """Ray clusters on Cloudera ML, beside or instead of those on Kubernetes. Default: none."""

    cml_api_key: Encrypted | None = None
    """The key of its API, if CML_API_KEY is not set: `pulumi config set --secret` writes it. Default: none."""

    external_clusters: tuple[RemoteClusterSettings, ...] = ()
    """Ray clusters that exist already, and that `up` itself submits `jobs` to. Default: none."""

    jobs: tuple[RemoteJobSettings, ...] = ()
    """Jobs that `up` itself submits, without Kubernetes. Default: none."""

    def in_context(self, name: str | None) -> Self:
        """The same for a context of the kubeconfig. None: the stack file's."""
        if name is None:
            return self
        return self.model_copy(update={"kubernetes": self.kubernetes.model_copy(update={"context": name})})

    @functools.cached_property
    def kept(self) -> dict[Any, Any]:
        """The cache of results derived from these settings (`stacks.cached`)."""
        return {}

    @property
    def ray_versions(self) -> tuple[str, ...]:
        """The versions of Ray of all RayClusters."""
        return tuple(cluster.ray_version for tenant in self.tenants for cluster in tenant.all_clusters)

    @property
    def operator_in_force(self) -> OperatorSettings:
        """`operator`, with the values that follow from the stack's scheduler and monitoring."""
        scheduler = {"batch_scheduler": "volcano"} if self.scheduler and self.scheduler.volcano else {}
        metrics = {"metrics": True} if self.monitoring else {}
        return self.operator.model_copy(update={**scheduler, **metrics}) if scheduler or metrics else self.operator

    @property
    def prometheus_namespace(self) -> str | None:
        """The namespace of the stack's own Prometheus; None: it has none."""
        return self.monitoring.own_namespace if self.monitoring and not self.platform else None

    @property
    def log_store_namespace(self) -> str | None:
        """The namespace of the stack's own log store; None: it has none."""
        return self.logs.own_namespace if self.logs and not self.platform else None

    @functools.cached_property
    def network_in_force(self) -> NetworkSettings:
        """`network`, with the namespace of the stack's own Prometheus among those that read metrics."""
        if self.prometheus_namespace is None:
            return self.network
        readers = dict.fromkeys((*self.network.monitoring, self.prometheus_namespace))
        return self.network.model_copy(update={"monitoring": tuple(readers)})

    @property
    def priorities(self) -> PriorityClassesSettings:
        """`priorityClasses`, with the values that follow from how the operator is installed."""
        return self.priority_classes.beside(self.operator.install)
