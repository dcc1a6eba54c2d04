"""Rules on features of a RayCluster: authentication, the autoscaler, GCS fault tolerance and the batch scheduler.

They follow ValidateRayClusterSpec (validation.go), and DoBatchSchedulingOnSubmission (controllers/ray/batchscheduler).
"""

from core.body import Body
from core.problems import Path
from core.versions import version_tuple
from kuberay.formats import generic_version, integer, older
from kuberay.releases import FIRST_RAY_WITH_KUBERNETES_TOKENS, FIRST_RAY_WITH_TOKENS
from kuberay.rules import SETS_V2, V2_VARIABLE, Cluster, Found, problem


def check_authentication(cluster: Cluster) -> Found:
    """The rules on authOptions."""
    options = cluster.spec.get("authOptions")
    if options is None:
        return
    path = (*cluster.path, "authOptions")
    kubernetes = bool(options.get("enableK8sTokenAuth"))
    if options.get("mode") == "token":
        yield from _ray_version(cluster, kubernetes)
        if kubernetes and options.get("secretName"):
            message = "with enableK8sTokenAuth the tokens are Kubernetes' own: remove secretName or enableK8sTokenAuth"
            yield problem("auth-kubernetes-token", (*path, "secretName"), options["secretName"], message)
    elif kubernetes:
        message = "enableK8sTokenAuth does nothing without the mode: set authOptions.mode to token"
        yield problem("auth-kubernetes-token", (*path, "enableK8sTokenAuth"), True, message)
    elif "mode" not in options:
        message = "authOptions without a mode leaves authentication off: set mode to token, or to disabled"
        yield problem("auth-mode", (*path, "mode"), None, message)


def check_no_kubernetes_tokens(cluster: Cluster, kind: str) -> Found:
    """Only standalone RayClusters can use Kubernetes tokens (ValidateRayJobSpec, ValidateRayServiceSpec)."""
    if cluster.spec.get("authOptions", {}).get("enableK8sTokenAuth"):
        message = f"a {kind} cannot have enableK8sTokenAuth: remove it, a secretName is possible"
        yield problem("auth-kubernetes-token", (*cluster.path, "authOptions", "enableK8sTokenAuth"), True, message)


def _ray_version(cluster: Cluster, kubernetes: bool) -> Found:
    ray_version = cluster.spec.get("rayVersion", "")
    version = generic_version(ray_version)
    required, setting = (
        (FIRST_RAY_WITH_KUBERNETES_TOKENS, "enableK8sTokenAuth")
        if kubernetes
        else (FIRST_RAY_WITH_TOKENS, "authOptions.mode token")
    )
    if version is None or older(version, version_tuple(required)):
        state = f"is {ray_version!r}" if ray_version else "is not set"
        message = (
            f"{setting} needs Ray {required} or later and rayVersion {state}: set rayVersion, or set mode to disabled"
        )
        yield problem("auth-ray-version", (*cluster.path, "rayVersion"), ray_version or None, message)


def check_autoscaler(cluster: Cluster) -> Found:
    """The rules of ValidateRayClusterSpec on the autoscaler's options, the head and all workers."""
    options = cluster.spec.get("autoscalerOptions", {})
    idle = options.get("idleTimeoutSeconds", 0)
    if idle < 0:
        path = (*cluster.path, "autoscalerOptions", "idleTimeoutSeconds")
        yield problem("autoscaler-idle-timeout", path, idle, f"idleTimeoutSeconds is {idle}: give 0 or more")
    if variable := cluster.head_env(V2_VARIABLE):
        path, value = variable
        if not cluster.autoscaling and value in SETS_V2:
            message = (
                f"{V2_VARIABLE} is set but there is no autoscaling: set enableInTreeAutoscaling to true, or remove it"
            )
            yield problem("autoscaler-version-env", path, value, message)
        if cluster.autoscaling and "version" in options:
            message = (
                f"autoscalerOptions.version and the head's {V2_VARIABLE} both set the version: remove the variable"
            )
            yield problem("autoscaler-version-env", path, value, message)
    if cluster.autoscaling and cluster.autoscaler_v2:
        for path, group in cluster.groups:
            policy = group["template"].get("spec", {}).get("restartPolicy", "")
            if policy not in ("", "Never"):
                message = (
                    f"restartPolicy is {policy!r}, but autoscaler v2 replaces pods itself: set it to Never or remove it"
                )
                yield problem(
                    "autoscaler-restart-policy", (*path, "template", "spec", "restartPolicy"), policy, message
                )


def check_scaled_group(cluster: Cluster, path: Path, group: Body) -> Found:
    """The rules on one worker group: its idle timeout, and whether it may be suspended."""
    idle = group.get("idleTimeoutSeconds")
    if idle is not None and idle < 0:
        message = f"idleTimeoutSeconds is {idle}: give 0 or more"
        yield problem("group-idle-timeout", (*path, "idleTimeoutSeconds"), idle, message)
    elif idle is not None and not cluster.sets_autoscaler_v2:
        message = "idleTimeoutSeconds of a group needs autoscaler v2: set autoscalerOptions.version to v2"
        yield problem("group-idle-timeout", (*path, "idleTimeoutSeconds"), idle, message)
    if group.get("suspend"):
        if not cluster.operator.enabled("RayJobDeletionPolicy"):
            message = (
                "a group can be suspended with the feature gate RayJobDeletionPolicy only: enable it, or remove suspend"
            )
            yield problem("group-suspend", (*path, "suspend"), True, message)
        elif cluster.autoscaling:
            message = (
                "a group cannot be suspended while the autoscaler is on: remove suspend, or enableInTreeAutoscaling"
            )
            yield problem("group-suspend", (*path, "suspend"), True, message)


ENABLED_ANNOTATION = "ray.io/ft-enabled"
NAMESPACE_ANNOTATION = "ray.io/external-storage-namespace"

_OPTIONS = "gcsFaultToleranceOptions"


def check_gcs_fault_tolerance(cluster: Cluster) -> Found:
    """The rules on the address, the credentials and the storage namespace of Redis."""
    has_options = _OPTIONS in cluster.spec
    annotated = cluster.annotations.get(ENABLED_ANNOTATION, "")
    params_at = (*cluster.path, "headGroupSpec", "rayStartParams")
    params = cluster.spec["headGroupSpec"].get("rayStartParams", {})

    if annotated and has_options:
        message = (
            f"the annotation {ENABLED_ANNOTATION} and {_OPTIONS} both enable GCS fault tolerance: remove the annotation"
        )
        yield problem("redis-annotation", ("metadata", "annotations", ENABLED_ANNOTATION), annotated, message)
    if address := cluster.head_env("RAY_REDIS_ADDRESS"):
        if has_options:
            message = f"the head's RAY_REDIS_ADDRESS conflicts with {_OPTIONS}: set only redisAddress there"
            yield problem("redis-address-env", *address, message)
        elif annotated.lower() != "true":
            message = (
                f"RAY_REDIS_ADDRESS enables GCS fault tolerance without KubeRay: set {_OPTIONS}.redisAddress instead"
            )
            yield problem("redis-address-env", *address, message)
    if has_options:
        if params.get("redis-password"):
            message = f"redis-password conflicts with {_OPTIONS}: set redisPassword there instead"
            yield problem("redis-password", (*params_at, "redis-password"), None, message)
        if password := cluster.head_env("REDIS_PASSWORD"):
            message = f"the head's REDIS_PASSWORD conflicts with {_OPTIONS}: set redisPassword there instead"
            yield problem("redis-password", password[0], None, message)
        if namespace := cluster.annotations.get(NAMESPACE_ANNOTATION):
            message = f"the annotation conflicts with {_OPTIONS}: set externalStorageNamespace there instead"
            yield problem("redis-namespace", ("metadata", "annotations", NAMESPACE_ANNOTATION), namespace, message)
    if user := params.get("redis-username"):
        message = f"KubeRay does not allow redis-username: set {_OPTIONS}.redisUsername instead"
        yield problem("redis-username", (*params_at, "redis-username"), user, message)
    if variable := cluster.head_env("REDIS_USERNAME"):
        message = f"KubeRay does not allow REDIS_USERNAME: set {_OPTIONS}.redisUsername instead"
        yield problem("redis-username", *variable, message)


_MODE_LABEL = "volcano.sh/network-topology-mode"
_TIER_LABEL = "volcano.sh/network-topology-highest-tier-allowed"


def check_batch_scheduler(body: Body, job: tuple[Body, Path] | None, scheduler: str | None) -> Found:
    """The rules of the operator's batch scheduler. `job`: a RayJob's spec and its path."""
    if scheduler == "volcano":
        yield from _volcano_labels(body, job)
    if job is None:
        return
    spec, path = job
    mode = spec["submissionMode"]
    if scheduler == "volcano" and "rayClusterSpec" not in spec:
        message = "volcano schedules no job on a selected cluster: give the job a rayClusterSpec"
        yield problem("scheduler-ray-job", (*path, "rayClusterSpec"), None, message)
    if scheduler == "scheduler-plugins":
        message = (
            "scheduler-plugins schedules RayClusters only: use volcano or yunikorn as the operator's batchScheduler"
        )
        yield problem("scheduler-ray-job", ("kind",), body["kind"], message)
    if scheduler == "kai-scheduler" and mode == "K8sJobMode":
        message = "kai-scheduler cannot schedule the pod that submits: set submissionMode to HTTPMode or SidecarMode"
        yield problem("scheduler-ray-job", (*path, "submissionMode"), mode, message)


def _volcano_labels(body: Body, job: tuple[Body, Path] | None) -> Found:
    """createPodGroup reads the labels of a RayCluster or RayJob. The cluster of a RayService inherits its labels."""
    labels = body["metadata"].get("labels", {})
    # RayJobs of a RayCronJob do not inherit its labels. A job on a selected cluster has no pod group.
    if body["kind"] == "RayCronJob" or (job is not None and "rayClusterSpec" not in job[0]):
        return
    tier = labels.get(_TIER_LABEL)
    if tier is not None and _MODE_LABEL in labels and integer(tier) is None:
        message = f"{tier!r} is not a tier of a network topology: give a whole number"
        yield problem("scheduler-network-tier", ("metadata", "labels", _TIER_LABEL), tier, message)
