"""Pod templates of head and workers, with the defaults of `podDefaults: secure`, and what the pods have beside Ray:
the collector of logs, and the gateway to Redis for fault tolerance of the GCS. Pure functions.

The defaults meet Pod Security `restricted`, have no Kubernetes token that they do not need, and have a priority.
KubeRay adds containers: the workers' init container and the Job that cleans up Redis have the security context of
Ray's container; the autoscaler has that of `autoscalerOptions` (ray-operator/controllers/ray/common/pod.go).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.logs import manifests as collector
from components.logs.settings import LogsSettings
from components.ray_cluster.settings import (
    OwnedClusterSettings,
    RayClusterSettings,
    WorkerGroupSettings,
    WorkersSettings,
)
from components.redis.connection import CA_KEY, PASSWORD_KEY, USERNAME_KEY, RedisConnection
from components.redis_gateway import manifests as gateway
from components.redis_gateway.settings import GatewaySettings
from components.tls import manifests as tls
from core.body import Body
from core.nodes import GPU_PRODUCT_LABEL, NodePool
from core.pods import RESTRICTED_CONTAINER, RESTRICTED_POD
from core.problems import Path, Problems
from core.strategic_merge import merge
from core.types import seconds
from kuberay.ray_start import DRAIN_VARIABLE
from kuberay.running import HEAD_CONTAINER

CLUSTER_LABEL = "ray.io/cluster"
NODE_TYPE_LABEL = "ray.io/node-type"
GROUP_LABEL = "ray.io/group"
"""Labels of Ray's pods, which a pod template cannot change (ray-operator/controllers/ray/common/pod.go, labelPod)."""

"""Names of Ray's containers. They are the first of their pods; KubeRay relies on that."""


@dataclass(frozen=True)
class Beside:
    """Additional parts of a pod of Ray."""

    init_containers: tuple[Body, ...] = ()
    """Init containers that start before all others."""

    volumes: tuple[Body, ...] = ()

    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of Ray's container, which the cluster's own variables may override."""

    variables: tuple[Body, ...] = ()
    """Variables of Ray's container with values from elsewhere, before all others."""

    mounts: tuple[Body, ...] = ()
    """Mounts in Ray's container."""

    def __add__(self, other: "Beside") -> "Beside":
        """Both. Variables of `other` apply over those of this one."""
        return Beside(
            init_containers=(*self.init_containers, *other.init_containers),
            volumes=(*self.volumes, *other.volumes),
            env={**self.env, **other.env},
            variables=(*self.variables, *other.variables),
            mounts=(*self.mounts, *other.mounts),
        )


NOTHING_BESIDE = Beside()


@dataclass(frozen=True)
class PodIdentity:
    """Account and priority of a pod. None: not set."""

    account: Any = None
    """Name of the ServiceAccount, or its Output."""

    priority_class: str | None = None
    """Name of the PriorityClass, if pods get defaults."""


def container(
    settings: RayClusterSettings,
    name: str,
    image: str | None,
    amounts: Mapping[str, str],
    env: Mapping[str, str],
    mounts: Iterable[Body] = (),
) -> Body:
    """Ray's container. Its requests are its limits, so that no other pod can use its resources."""
    made: Body = {
        "name": name,
        "image": image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        **container_defaults(settings),
    }
    if amounts:
        made["resources"] = {"limits": dict(amounts), "requests": dict(amounts)}
    secured = for_tls(settings)
    if variables := [*secured["env"], *({"name": variable, "value": value} for variable, value in env.items())]:
        made["env"] = variables
    if mounted := [*settings.volume_mounts, *secured["volumeMounts"], *mounts]:
        made["volumeMounts"] = mounted
    return made


def with_image_alone(settings: RayClusterSettings, **other: Any) -> RayClusterSettings:
    """The settings for a pod that needs Ray's image, and nothing else that Ray's pods have. `other`: settings that
    differ."""
    return settings.model_copy(update={"env": {}, "labels": {}, "volumes": (), "volume_mounts": (), **other})


def for_tls(settings: RayClusterSettings) -> dict[str, list[Body]]:
    """`env` and `volumeMounts` for TLS of a container that runs Ray; empty if the cluster has no TLS."""
    if settings.tls is None:
        return {"env": [], "volumeMounts": []}
    env = [{"name": variable, "value": value} for variable, value in tls.ENVIRONMENT.items()]
    return {"env": env, "volumeMounts": [tls.MOUNT]}


def template(
    settings: RayClusterSettings,
    ray: Body,
    identity: PodIdentity,
    pool: NodePool | None,
    over: Iterable[tuple[Path, Mapping[str, Any]]] = (),
    beside: Beside = NOTHING_BESIDE,
) -> Body:
    """The pod template around Ray's container `ray`, on the nodes of `pool`.

    `over`: pod templates that are merged into it, each with its path in the cluster's settings.
    Raises Problems if one cannot be merged.
    """
    # Autoscaler v2 replaces a pod that ended; the operator refuses any other restart policy.
    spec: Body = {
        "restartPolicy": "Never",
        "containers": [ray],
        **(placement(pool) if pool else {}),
        **pod_defaults(settings, identity.priority_class),
    }
    if identity.account is not None:
        spec["serviceAccountName"] = identity.account
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    initial = list(beside.init_containers)
    if settings.tls is not None:
        certificate = tls.init_container(ray["name"] == HEAD_CONTAINER, ray["image"], settings.image_pull_policy)
        initial.append({**certificate, **container_defaults(settings)})
    if initial:
        spec["initContainers"] = initial
    of_tls = tls.volumes(settings.name) if settings.tls is not None else ()
    if volumes := [*settings.volumes, *of_tls, *beside.volumes]:
        spec["volumes"] = volumes
    made: Body = {"metadata": {"labels": dict(settings.labels)}, "spec": spec} if settings.labels else {"spec": spec}
    for path, fragment in over:
        made = merged_over(made, fragment, path)
    return completed(settings, made)


def merged_over(base: Body, fragment: Mapping[str, Any], path: Path) -> Body:
    """`base` with the fragment of the settings at `path` merged into it. Raises Problems, with paths in the
    settings."""
    try:
        merged: Body = merge(base, fragment)
    except Problems as refused:
        raise Problems(problem.below(path) for problem in refused.problems) from refused
    return merged


def placement(pool: NodePool) -> Body:
    """The fields that bind pods to the nodes of a pool, as far as its labels and taints distinguish them."""
    placed: Body = {}
    if pool.gpu_product:
        term = {"key": GPU_PRODUCT_LABEL, "operator": "In", "values": [pool.gpu_product]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        placed["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if pool.labels:
        placed["nodeSelector"] = dict(pool.labels)
    if pool.taints:
        placed["tolerations"] = [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            for taint in pool.taints
        ]
    return placed


TOKEN_VOLUME = "autoscaler-token"  # noqa: S105 (a volume's name)

_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (where Kubernetes' clients look for their token)

_TOKEN_SECONDS = 3607
"""Lifetime of a token, as in the volume that Kubernetes mounts by itself; the kubelet renews it in time."""

_TOKEN: Body = {
    "name": TOKEN_VOLUME,
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ]
    },
}
"""The volume that Kubernetes adds by default: the account's token, and the API server's certificate authority."""

_HEAD_ENDS_WITHIN = 10
"""Seconds."""

_DRAIN_SECONDS = 40
"""The default of drainTimeout. While a pod ends, KubeRay creates none in its place (raycluster_controller.go:
reconcilePods counts it), so work that does not fit begins that much later."""

_AFTER_DRAIN = 20
"""Seconds of a worker's grace period beyond its drain. Measured on real pods: SIGTERM comes up to 2 s after the
deletion, and Ray ends 2 to 4 s after its drain. With equal times the drain ended in SIGKILL in 7 of 7 cases."""


def container_defaults(settings: RayClusterSettings) -> Body:
    """The defaults of a container that runs Ray, and of the autoscaler, before pod templates are merged into it."""
    if settings.pod_defaults == "none":
        return {}
    user = {"runAsUser": settings.run_as_user} if settings.run_as_user != "image" else {}
    return {"securityContext": {**RESTRICTED_CONTAINER, **user}}


def pod_defaults(settings: RayClusterSettings, priority_class: str | None) -> Body:
    """The defaults of a pod's spec before pod templates are merged into it. `priority_class`: None for none."""
    if settings.pod_defaults == "none":
        return {}
    priority = {"priorityClassName": priority_class} if priority_class else {}
    return {"securityContext": RESTRICTED_POD, **priority}


def completed(settings: RayClusterSettings, template: Body) -> Body:
    """The template with defaults that depend on the pod templates that were merged into it.

    Containers without a security context get one. Without a named account the pod gets no token.
    A value that is not a template stays unchanged; the CRD's schema refuses it.
    """
    spec = template.get("spec")
    if settings.pod_defaults == "none" or not isinstance(spec, dict):
        return template
    contained = {kind: _restricted(spec[kind]) for kind in ("containers", "initContainers") if kind in spec}
    named = "serviceAccountName" in spec or uses_kubernetes_tokens(settings)
    token = {} if named else {"automountServiceAccountToken": False}
    return {**template, "spec": {**token, **spec, **contained}}


def with_autoscaler_token(settings: RayClusterSettings, head: Body, options: Body) -> tuple[Body, Body]:
    """The head's template and the autoscaler's options. If the pod has no token, the autoscaler alone gets one.

    So other processes in the head, such as the drivers of jobs, have no token.
    """
    spec = head.get("spec")
    if settings.pod_defaults == "none" or not isinstance(spec, dict):
        return head, options
    volumes = spec.get("volumes", [])
    if spec.get("automountServiceAccountToken") is not False or not isinstance(volumes, list):
        return head, options
    mounts = [*options.get("volumeMounts", []), {"name": TOKEN_VOLUME, "mountPath": _TOKEN_PATH, "readOnly": True}]
    return {**head, "spec": {**spec, "volumes": [*volumes, _TOKEN]}}, {**options, "volumeMounts": mounts}


def with_short_grace_period(settings: RayClusterSettings, head: Body) -> Body:
    """The template of a head with an autoscaler, with a short grace period if none is set.

    The autoscaler is the first process of its container and does not handle SIGTERM (Ray 2.60), so it ends only when
    the grace period is over. The pod, its Service and a replacing head wait for it. Ray itself ends in two seconds.
    """
    return _with_grace_period(head, None if settings.pod_defaults == "none" else _HEAD_ENDS_WITHIN)


def head_without_drain(settings: RayClusterSettings) -> dict[str, str]:
    """The variable with which a head ends at once: an actor on it would hold it for the whole drain, and its cluster
    ends with it in any case. The head of a service may still answer requests."""
    standing = not isinstance(settings, OwnedClusterSettings)
    return {DRAIN_VARIABLE: "0"} if standing and settings.drains_by_default else {}


def drain_seconds(settings: RayClusterSettings, workers: WorkersSettings | WorkerGroupSettings) -> int | None:
    """Seconds for which a worker drains before it ends. None: Ray's default."""
    configured = workers.drain_timeout or settings.drain_timeout
    if configured is not None:
        return seconds(configured)
    return _DRAIN_SECONDS if settings.drains_by_default else None


def draining(drain: int | None, template: Body) -> Body:
    """The template of a worker, with a grace period that its drain fits into if none is set."""
    return _with_grace_period(template, None if drain is None else drain + _AFTER_DRAIN)


def _with_grace_period(template: Body, grace: int | None) -> Body:
    spec = template.get("spec")
    if grace is None or not isinstance(spec, dict):
        return template
    return {**template, "spec": {"terminationGracePeriodSeconds": grace, **spec}}


def uses_kubernetes_tokens(settings: RayClusterSettings) -> bool:
    """Whether Ray's processes authenticate to each other by ServiceAccount tokens, which Kubernetes reviews."""
    return bool(settings.auth_options and settings.auth_options.enable_k8s_token_auth)


def _restricted(containers: Any) -> Any:
    if not isinstance(containers, list):
        return containers
    return [
        {"securityContext": RESTRICTED_CONTAINER, **each} if isinstance(each, dict) else each for each in containers
    ]


def log_sidecar(settings: RayClusterSettings, logs: LogsSettings | None) -> Beside:
    """What each pod of Ray has for its logs."""
    if logs is None:
        return NOTHING_BESIDE
    return Beside(
        init_containers=(collector.sidecar(logs, _user(settings), settings.image_pull_policy),),
        volumes=collector.volumes(logs),
        env=collector.variables_of_ray(logs),
        mounts=(collector.RAY_MOUNT,),
    )


OPTIONS = "gcsFaultToleranceOptions"

RECONNECT_TIMEOUT = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""Seconds for which a Ray process tries to reach a GCS that is gone. Then the process ends."""

RECONNECT_SECONDS = {"head": 60, "worker": 600}
"""The value if it is not set: Ray's default (src/ray/common/ray_config_def.h), and KubeRay's for workers of a cluster
with GCS fault tolerance (ray-operator/controllers/ray/common/pod.go: configureGCSFaultTolerance)."""

_WITHOUT_GATEWAY = {"RAY_num_redis_request_retries": "9", "RAY_redis_retry_max_ms": "1000"}
"""Retries of a GCS that lost its Redis master. It never finds the next master itself; only its restart does. With Ray's
5 tries it restarts before Sentinel has elected the next master, and has to restart again. With more than 9 it only
restarts later. Measured on real pods, `down-after` 2 s: 12.5 s without control plane, against 29.8 s."""

DELETION_TIMEOUT = "ray.io/gcs-ft-deletion-timeout"
"""Annotation: seconds after which KubeRay removes its finalizer from a deleted RayCluster whose keys are still in Redis
(since 1.6.2, raycluster_controller.go: getGCSFTDeletionTimeout)."""

NAME_VARIABLE = "RAY_PLATFORM_CLUSTER_NAME"
"""Variable of the head with its RayCluster's name, if KubeRay generates that. KubeRay has it in RAY_CLUSTER_NAME, too,
but adds that after RAY_external_storage_namespace, and a variable can refer to earlier ones only (pod.go:
setContainerEnvVars)."""

_DELETION_SECONDS = 300
"""The default of the annotation. Older versions allow the clean-up Job the same time."""

_ENDING_SECONDS = 300
"""Seconds for the head's pod to end and for the operator to notice."""


@dataclass(frozen=True)
class RedisPlace:
    """Where the GCS of a RayCluster stores its tables."""

    connection: RedisConnection

    namespace: str
    """Name of the tenant's namespace. The tenant's Redis user can access only keys that begin with it."""

    gateway: GatewaySettings | None = field(default_factory=GatewaySettings)
    """The gateway between Ray and Redis; None: Ray connects to Redis itself."""

    storage_namespace: Any = None
    """Prefix of the RayCluster's keys, or its Output; None: it is not created yet."""


def storage_namespace(namespace: str, cluster: str, random: str) -> str:
    """The prefix of the keys of one RayCluster, after `RAY` (src/ray/gcs/store_client/redis_store_client.cc).

    Names of namespaces and RayClusters have no dot, so no other tenant and no other cluster has the same prefix.
    `random`: created with the RayCluster, so that a later RayCluster of the same name does not find its keys.
    """
    return f"{namespace}.{cluster}.{random}"


def fault_tolerance_options(place: RedisPlace, settings: RayClusterSettings) -> Body:
    """KubeRay's options for the RayCluster.

    That of a RayJob or RayService has its own generated name in its storage namespace: two of one owner may run at the
    same time. The kubelet puts it in place of the variable, in the head and in the pod of the clean-up Job.
    """
    connection = place.connection
    keys = place.storage_namespace
    if isinstance(settings, OwnedClusterSettings):
        keys = storage_namespace(place.namespace, settings.name, f"$({NAME_VARIABLE})")
    scheme = "rediss" if connection.tls else "redis"
    return {
        "redisAddress": gateway.ADDRESS if place.gateway else f"{scheme}://{connection.address}",
        "redisUsername": _from_secret(connection, USERNAME_KEY),
        "redisPassword": _from_secret(connection, connection.gateway_password_key if place.gateway else PASSWORD_KEY),
        "externalStorageNamespace": storage_namespace(place.namespace, settings.name, "new") if keys is None else keys,
    }


_NAME: Body = {
    "name": NAME_VARIABLE,
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{CLUSTER_LABEL}']"}},
}


def beside_head(settings: RayClusterSettings, place: RedisPlace | None) -> Beside:
    """What the head's pod has for fault tolerance: the gateway, or without one the variables that Ray needs."""
    if place is None:
        return NOTHING_BESIDE
    connection = place.connection
    variables = (_NAME,) if isinstance(settings, OwnedClusterSettings) else ()
    if place.gateway:
        image = settings.head.image or settings.image
        beside = gateway.sidecar(
            place.gateway, connection, place.namespace, image, _user(settings), settings.image_pull_policy
        )
        return Beside(
            init_containers=(beside,),
            volumes=gateway.volumes(connection),
            variables=variables,
        )
    if not connection.tls:
        return Beside(env=_WITHOUT_GATEWAY, variables=variables)
    return Beside(
        variables=variables,
        env={**_WITHOUT_GATEWAY, "RAY_REDIS_CA_CERT": f"{gateway.FOLDER}/{CA_KEY}"},
        volumes=(gateway.volume(connection, CA_KEY),),
        mounts=(gateway.MOUNT,),
    )


def _user(settings: RayClusterSettings) -> int | None:
    """The user ID of Ray's container, which containers beside it have, too; None: that of the image."""
    return None if settings.run_as_user == "image" else settings.run_as_user


def deletion_seconds(annotations: Mapping[str, str]) -> int:
    """The most seconds that the deletion of a RayCluster takes, also with Redis down.

    A value that is not a number counts as not set, as in KubeRay.
    """
    annotated = annotations.get(DELETION_TIMEOUT, "")
    number = int(annotated) if annotated.isascii() and annotated.isdigit() and len(annotated) < 10 else 0
    return max(number, _DELETION_SECONDS) + _ENDING_SECONDS


def _from_secret(connection: RedisConnection, key: str) -> Body:
    return {"valueFrom": {"secretKeyRef": {"name": connection.secret, "key": key}}}
