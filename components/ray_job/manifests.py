"""Renders the settings of a RayJob into the body for the API server, maps a part of that to its setting, so that a
problem is reported where the author can fix it, and counts its usage of a quota. Pure functions."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from components.objects import Object, below
from components.ray_cluster.manifests import API_VERSION
from components.ray_cluster.objects import beside_ray_clusters, certificates
from components.ray_cluster.origin import cut
from components.ray_cluster.pods import PodIdentity, container, template, with_image_alone
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.settings import JOB_LABEL, RayJobSettings, SubmissionSettings
from components.tenant.demand import Container, Demand, Group, Usage, defaults, demand, group_of, inside
from components.tenant.settings import LimitSettings
from core.body import Body, ReadOnlyBody
from core.problems import Path
from core.strategic_merge import place_of
from core.yaml_writer import go_yaml
from kuberay.runtime_env import RuntimeEnvSettings

RUN_ANNOTATION = "ray-platform/run"
"""Annotation that identifies a run. Another value replaces the RayJob, so that the job starts again."""

SUBMITTER = "ray-job-submitter"
"""Name of the container that submits (ray-operator/controllers/ray/utils/constant.go: SubmitterContainerName)."""

SUBMITTER_LABEL = "batch.kubernetes.io/job-name"
"""Label of the pod that submits: the name of its Job, which is the RayJob's (rayjob_controller.go: createNewK8sJob)."""

SUBMITTER_AMOUNTS: Body = {
    "limits": {"cpu": "1", "memory": "1Gi"},
    "requests": {"cpu": "500m", "memory": "200Mi"},
}
"""KubeRay's own (ray-operator/controllers/ray/common/job.go: GetDefaultSubmitterContainer)."""

RAY_JOB = "ray-job"
"""Name of the object that is the RayJob itself."""

_NOT_OF_A_RUN: dict[str, Any] = {
    **dict.fromkeys(("suspend", "wait_for", "wait_timeout"), True),
    "cluster": {"head": {"evictable"}},
}
"""Settings whose change does not start the job again: no pod of it reads them."""


def ray_job(
    settings: RayJobSettings, own: Body | None, submits_for: RayClusterSettings | None, ttl: int | None = None
) -> Body:
    """The `ray.io/v1` RayJob. KubeRay defaults the fields that are not set.

    `own`: the body of `settings.own_cluster` as a RayCluster; None if the job has no cluster of its own. KubeRay copies
    the RayJob's labels and annotations to the RayCluster that it creates (rayjob_controller.go:
    constructRayClusterForRayJob).
    `submits_for`: the RayCluster that the job runs on, its own or the selected one, whose image the pod that submits
    has; None if the stack does not know it.
    `ttl`: `ttlSecondsAfterFinished` where the settings have none.
    Raises Problems, with paths in the settings, if `submitterPodTemplate` cannot be merged.
    """
    metadata = (own or {}).get("metadata", {})
    labels, annotations = metadata.get("labels"), metadata.get("annotations") or {}
    return {
        "apiVersion": API_VERSION,
        "kind": "RayJob",
        "metadata": {
            "name": settings.name,
            **({"labels": labels} if labels else {}),
            "annotations": {**annotations, RUN_ANNOTATION: run(settings)},
        },
        "spec": {key: value for key, value in _spec(settings, own, submits_for, ttl).items() if value is not None},
    }


def ray_job_objects(settings: RayJobSettings, body: Body) -> Iterator[Object]:
    """A RayJob and the objects beside its RayCluster, for one namespace. `body`: of the RayJob (`ray_job`)."""
    own = settings.own_cluster
    beside = beside_ray_clusters(own, JOB_LABEL) if own else []
    yield from below(beside, ("cluster",))
    yield Object(RAY_JOB, body, after=certificates(beside))


def run(settings: SubmissionSettings) -> str:
    """Identifies the run that these settings describe.

    It depends on the settings alone, not on what they are rendered to: another release of this program, or a change of
    the tenant's defaults, must not start an ended job again.
    """
    described = settings.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=_NOT_OF_A_RUN)
    if described.get("cluster", {}).get("head") == {}:
        del described["cluster"]["head"]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def submitted(settings: SubmissionSettings) -> dict[str, Any]:
    """What Ray's jobs API gets, with its own keys (ray, dashboard/modules/job/common.py: JobSubmitRequest)."""
    environment = settings.runtime_env
    keywords = {
        "entrypoint": settings.entrypoint,
        "runtime_env": environment.model_dump(exclude_unset=True) if environment else None,
        "metadata": dict(settings.metadata) or None,
        "entrypoint_num_cpus": settings.entrypoint_num_cpus,
        "entrypoint_num_gpus": settings.entrypoint_num_gpus,
        "entrypoint_resources": dict(settings.entrypoint_resources) or None,
    }
    return {key: value for key, value in keywords.items() if value is not None}


def _spec(
    settings: RayJobSettings, own: Body | None, submits_for: RayClusterSettings | None, ttl: int | None
) -> dict[str, Any]:
    environment, selector = settings.runtime_env, settings.cluster_selector
    submitter, strategy = settings.submitter_config, settings.deletion_strategy
    resources, own_ttl = settings.entrypoint_resources, settings.ttl_seconds_after_finished
    return {
        "entrypoint": settings.entrypoint,
        "submissionMode": settings.submission_mode,
        "runtimeEnvYAML": _runtime_env(environment) if environment else None,
        "metadata": dict(settings.metadata) or None,
        "entrypointNumCpus": settings.entrypoint_num_cpus,
        "entrypointNumGpus": settings.entrypoint_num_gpus,
        "entrypointResources": json.dumps(resources) if resources else None,
        "backoffLimit": settings.backoff_limit,
        "activeDeadlineSeconds": settings.active_deadline_seconds,
        "preRunningDeadlineSeconds": settings.pre_running_deadline_seconds,
        "suspend": settings.suspend or None,
        "shutdownAfterJobFinishes": settings.shuts_down or None,
        "ttlSecondsAfterFinished": ttl if own_ttl is None else own_ttl,
        "deletionStrategy": strategy.model_dump(by_alias=True, exclude_none=True, mode="json") if strategy else None,
        "clusterSelector": selector.model_dump(by_alias=True) if selector else None,
        "submitterConfig": submitter.model_dump(by_alias=True) if submitter else None,
        "submitterPodTemplate": _submitter(settings, submits_for),
        "rayClusterSpec": own["spec"] if own else None,
    }


def _runtime_env(environment: RuntimeEnvSettings) -> str:
    # As JSON has it: the reader of stack files keeps how a number is written, in types that PyYAML does not know.
    return go_yaml(environment.model_dump(mode="json", exclude_unset=True))


def _submitter(settings: RayJobSettings, cluster: RayClusterSettings | None) -> Body | None:
    """The pod that submits. KubeRay's own has no security context, so that Pod Security `restricted` refuses it."""
    if settings.submission_mode != "K8sJobMode" or cluster is None:
        return settings.submitter_pod_template or None
    plain = with_image_alone(cluster, tls=None)
    ray = {**container(plain, SUBMITTER, cluster.head.image, {}, {}), "resources": SUBMITTER_AMOUNTS}
    return template(plain, ray, PodIdentity(), None, [(("submitterPodTemplate",), settings.submitter_pod_template)])


_KEYS = {"runtimeEnvYAML": "runtimeEnv", "template": "submitterPodTemplate"}
"""Keys that differ from KubeRay's fields, and from those of a Job that submits to an external cluster."""


def job_setting_at(settings: RayJobSettings, body: ReadOnlyBody, path: Path) -> Path:
    """The path in the job's settings that the part of its body at `path` comes from; `()` for the job itself.

    Parts of `rayClusterSpec` come from the settings of its cluster (ray_cluster.origin).
    """
    configured = settings.model_dump(by_alias=True, exclude_unset=True)
    match path:
        case ("metadata", "name", *_):
            return ("name",)
        case ("spec", "submitterPodTemplate" | "template", *rest) if settings.submitter_pod_template:
            rendered = body["spec"].get("submitterPodTemplate") or body["spec"].get("template")
            within, _ = place_of(settings.submitter_pod_template, rendered, tuple(rest))
            return ("submitterPodTemplate", *within)
        case ("spec", str(field), *rest):
            return cut(configured, (_KEYS.get(field, field), *rest))
    return ()


SUBMITTER_GROUP = "submitter"
"""Name of the group with the pod that submits the job."""


def demand_of_job(body: Mapping[str, Any], limits: LimitSettings | None) -> Demand:
    """The usage of a RayJob with its cluster, if that is its own; paths are in the body of the RayJob.

    The pod that submits the job counts beside it: Volcano adds its resources to those of the gang
    (batchscheduler/volcano/volcano_scheduler.go: handleRayJob), and Kueue to the Workload. In SidecarMode KubeRay adds
    a container to the head (rayjob_controller.go: getSubmitterContainer).
    """
    name, spec, template = body["metadata"]["name"], body["spec"], body["spec"].get("submitterPodTemplate")
    groups: tuple[Group, ...] = ()
    objects: Usage = {"count/rayjobs.ray.io": Decimal(1)}
    scales = False
    if own := spec.get("rayClusterSpec"):
        sidecar = Container(("spec", "headGroupSpec"), {"name": SUBMITTER, "resources": SUBMITTER_AMOUNTS})
        beside = [sidecar] if spec.get("submissionMode") == "SidecarMode" else []
        of_cluster = demand({"metadata": body["metadata"], "spec": own}, limits, beside)
        scales, objects = of_cluster.scales, objects | of_cluster.objects
        groups = inside(of_cluster.groups, ("spec", "rayClusterSpec"))
    if template and spec.get("submissionMode") == "K8sJobMode":
        submitter = group_of(
            ("spec", "submitterPodTemplate"), f"the {SUBMITTER_GROUP}", {"template": template}, defaults(limits)
        )
        # In a RayJob the pod template stands alone.
        containers = tuple(
            replace(each, path=tuple(step for step in each.path if step != "template")) for each in submitter.containers
        )
        groups = (*groups, replace(submitter, containers=containers))
        objects |= {"count/jobs.batch": Decimal(1)}
    return Demand(name, () if spec.get("suspend") else groups, objects, scales)
