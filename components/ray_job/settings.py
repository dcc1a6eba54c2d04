"""Settings of a RayJob."""

import functools
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from components.ray_cluster.settings import (
    ClusterName,
    ClusterTemplateSettings,
    OwnedClusterSettings,
    PodTemplate,
    cluster_of_owner,
)
from core.types import LabelValue, NonEmptyText, NotEmpty, ReservedGpus, Settings, Timeout, dns_1035_label
from kuberay.formats import LONGEST
from kuberay.runtime_env import RuntimeEnvSettings

JobName = Annotated[str, dns_1035_label(LONGEST["RayJob"])]
"""KubeRay's limit, so that derived names have at most 63 characters (MaxRayJobNameLength)."""

Seconds = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)]
SecondsOrZero = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
Count = Annotated[int, Strict(), Field(ge=0, le=1000)]


JOB_LABEL = "ray-platform/ray-job"
"""Label of the RayCluster that a RayJob has for itself, and of its pods: the RayJob's name. KubeRay generates the name
of that RayCluster."""


class ClusterSelectorSettings(Settings):
    """Selects a RayCluster by its name."""

    cluster: ClusterName = Field(alias="ray.io/cluster")
    """Name of a RayCluster of the tenant."""


class SubmitterConfigSettings(Settings):
    """The Kubernetes Job that submits a job."""

    backoff_limit: Count = 2
    """How often the submission is tried again."""


class DeletionConditionSettings(Settings):
    """When a rule applies: one of the statuses."""

    job_status: Literal["SUCCEEDED", "FAILED"] | None = None
    """The status of the job."""

    job_deployment_status: Literal["Failed"] | None = None
    """`Failed`: also if the job could not be submitted, or ran into a deadline."""

    ttl_seconds: SecondsOrZero = 0
    """Seconds from that status on."""


class DeletionRuleSettings(Settings):
    """What is deleted, and when."""

    policy: Literal["DeleteCluster", "DeleteWorkers", "DeleteNone"]
    """`DeleteWorkers` keeps the head with its logs; it is not possible with autoscaling. KubeRay's `DeleteSelf` is not
    allowed: the next refresh would find no RayJob, and the `up` after it would run the job again."""

    condition: DeletionConditionSettings
    """When it applies."""


class DeletionStrategySettings(Settings):
    """What happens to the cluster after the job has ended."""

    deletion_rules: Annotated[tuple[DeletionRuleSettings, ...], NotEmpty]
    """The rules; a later stage must not apply before an earlier one."""


_OPTIONS_OF_RAY = {"CPU": "entrypointNumCpus", "GPU": "entrypointNumGpus", "memory": "", "object_store_memory": ""}
"""Resources that Ray refuses among `resources` (python/ray/_common/ray_option_utils.py: _validate_resources), each with
its key."""


def _custom(name: str) -> str:
    if (key := _OPTIONS_OF_RAY.get(name)) is not None:
        raise ValueError(f"Ray refuses {name!r} here: {f'set {key}' if key else 'remove it'}")
    return name


ResourceName = Annotated[NonEmptyText, AfterValidator(_custom)]
"""Name of a resource that is not one of Ray's own."""


class SubmissionSettings(Settings):
    """What Ray's jobs API gets of a job."""

    name: JobName
    """Name of the job."""

    entrypoint: NonEmptyText | None = None
    """The command that Ray runs."""

    runtime_env: RuntimeEnvSettings | None = None
    """Ray's runtime environment: packages, working directory, variables."""

    metadata: dict[NonEmptyText, str] = Field(default_factory=dict)
    """Metadata of the job in Ray."""

    entrypoint_num_cpus: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """CPUs that the entrypoint reserves. Default: none, so that it runs on the head."""

    entrypoint_num_gpus: Annotated[float, Field(gt=0, le=10_000), ReservedGpus] | None = None
    """GPUs that the entrypoint reserves: a part of one, or whole ones."""

    entrypoint_resources: dict[ResourceName, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Ray custom resources that the entrypoint reserves."""


class JobSettings(SubmissionSettings):
    """What a job runs, on which cluster, and when that is deleted."""

    name: JobName
    """Name of the RayJob. It must differ from those of the tenant's RayClusters, because both name a Service
    `<name>-head-svc`."""

    entrypoint: NonEmptyText | None = None
    """The command that Ray runs. Not with `InteractiveMode`; all other modes need it."""

    cluster: ClusterTemplateSettings | None = None
    """The job's own cluster, with the keys of `clusters` except `name`, `adopt`, `readyTimeout`, `updates`, `ingress`
    and `idleTerminationOptions`."""

    cluster_selector: ClusterSelectorSettings | None = None
    """An existing RayCluster in place of `cluster`. Not with Volcano: KubeRay 1.6 never starts such a job there."""

    submission_mode: Literal["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"] = "K8sJobMode"
    """Who submits the job. `K8sJobMode`: a pod, whose log is the job's. `HTTPMode`: the operator. `SidecarMode`: a
    container in the head's pod; not in a namespace of level `restricted`. `InteractiveMode`: somebody, who then writes
    the job's ID into the RayJob's `jobId`."""

    submitter_config: SubmitterConfigSettings | None = None
    """With `K8sJobMode`: the Job that submits. Default: it tries twice more."""

    submitter_pod_template: PodTemplate = Field(default_factory=dict)
    """With `K8sJobMode`: merged over the pod that submits. Its container is the first, `ray-job-submitter`."""

    backoff_limit: Count | None = None
    """How often a failed job is tried again, each time on a new cluster. Default: not."""

    active_deadline_seconds: Seconds | None = None
    """The job fails if it has not ended within this time, in seconds. The time in which its pods wait for room counts,
    too. Default: no limit."""

    pre_running_deadline_seconds: Seconds | None = None
    """The job fails if it does not run within this time, in seconds. Default: no limit. From KubeRay 1.6 on."""

    shutdown_after_job_finishes: bool | None = None
    """Whether the cluster is deleted after the job. Default: true, unless `deletionStrategy` is set or the cluster is
    not the job's own."""

    ttl_seconds_after_finished: SecondsOrZero | None = None
    """Time between the end of the job and the deletion of its cluster, in seconds. Default: none."""

    deletion_strategy: DeletionStrategySettings | None = None
    """In place of `shutdownAfterJobFinishes`: what is deleted, when. Needs KubeRay's feature gate
    `RayJobDeletionPolicy`."""

    @functools.cached_property
    def own_cluster(self) -> OwnedClusterSettings | None:
        """The job's own cluster as a RayCluster with the job's name, and with its label; None if it has none."""
        return cluster_of_owner(self.cluster, self.name, JOB_LABEL) if self.cluster else None

    @property
    def shuts_down(self) -> bool:
        """Whether KubeRay deletes the cluster after the job."""
        if self.shutdown_after_job_finishes is not None:
            return self.shutdown_after_job_finishes
        return self.cluster is not None and self.deletion_strategy is None


class RayJobSettings(JobSettings):
    """A job, on a cluster that KubeRay creates for it and deletes after it, on a RayCluster of the tenant, or on an
    external cluster.

    The keys are KubeRay's, except `cluster`, `externalCluster`, `runtimeEnv`, `runId`, `waitFor` and `waitTimeout`. A
    job starts when it is added, and again when its settings or its `runId` change; a job that runs then is stopped
    first. Nothing else starts it again: no other `up`, no refresh, no newer release of this program.
    """

    external_cluster: ClusterName | None = None
    """Name of one of the tenant's `externalClusters` in place of `cluster`. A Job of Kubernetes submits the job and
    follows it; KubeRay does not know it."""

    run_id: LabelValue | None = Field(default=None, min_length=1)
    """Any value. A change starts the job again."""

    suspend: bool = False
    """True: its cluster is deleted, or not created. False again: the job starts again from the beginning. A change does
    not replace the RayJob."""

    wait_for: Literal["nothing", "running", "succeeded"] = "nothing"
    """What `up` waits for. `nothing`: until the API server has the RayJob. `running`: until the job runs. `succeeded`:
    until it has ended; an `up` fails if the job has."""

    wait_timeout: Timeout = "10m"
    """Time for which `up` waits. Afterwards it reports why the job is not there yet, and the job continues."""
