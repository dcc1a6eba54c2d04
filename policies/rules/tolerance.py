"""Fault tolerance of Ray's GCS: its storage in Redis, and how long head and workers wait for each other."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from core.secrets import VARIABLE
from policies.cel import HEAD, HEAD_CONTAINER, of_ray, text
from policies.rule import Severity, Violations, rule
from policies.values import Node
from policies.walk import Pod, RayCluster, Stack

_CLUSTERS = ("RayCluster", "RayJob", "RayService", "RayCronJob")
_GUIDE = "https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/kuberay-gcs-ft.html"
_RECONNECT = "RAY_gcs_rpc_server_reconnect_timeout_s"
_RECONNECT_SECONDS = {"head": 60, "worker": 600}
"""Ray's default (src/ray/common/ray_config_def.h), and KubeRay's for workers with GCS fault tolerance
(ray-operator/controllers/ray/common/pod.go: configureGCSFaultTolerance)."""

_OPTIONS_IN_CEL = "ray.?gcsFaultToleranceOptions"
_ENV_IN_CEL = f"{HEAD_CONTAINER}.?env.orValue([])"
_PARAMETER_IN_CEL = f"{HEAD}.?rayStartParams[?'redis-password']"


def _referenced_in_cel(password: str) -> str:
    return f"!{password}.?value.hasValue() && {password}.?valueFrom.?secretKeyRef.hasValue()"


def _options(cluster: RayCluster) -> Node:
    return cluster.spec.at("gcsFaultToleranceOptions")


@rule(
    "ray-gcsft-on",
    Severity.LOW,
    what="The cluster's state survives the loss of its head.",
    why="Without a Redis the GCS keeps its tables in memory: a head that restarts ends all actors and jobs.",
    source=_GUIDE,
    fix="Set gcsFaultToleranceOptions, or `faultTolerance: true` in this platform's stack file.",
    kinds=("RayCluster", "RayService"),
)
def on(cluster: RayCluster) -> Violations:
    """Requires the options, or the older annotation. The rule skips RayJobs, whose cluster lives for one job."""
    if not _options(cluster).is_set and cluster.owner.annotation("ray.io/ft-enabled").text != "true":
        yield _options(cluster).wrong("is not set")


@rule(
    "ray-redis-address",
    Severity.HIGH,
    what="The address of Redis has a port.",
    why="Ray takes the text after the last colon as the port, and the head never starts.",
    source=f"{_GUIDE}; ray python/ray/_private/services.py",
    fix="Write redis://HOST:6379, or rediss:// for TLS.",
    kinds=_CLUSTERS,
)
def address(cluster: RayCluster) -> Violations:
    """Requires one host and one port."""
    redis_address = _options(cluster).at("redisAddress")
    if not _options(cluster).is_set:
        return
    if not redis_address.text:
        yield redis_address.wrong("is not set")
    elif _host_and_port(redis_address.given or "") is None:
        yield redis_address.wrong(f"{redis_address.shown()} is not an address with a port from 1 to 65535")


def _host_and_port(text: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(text if "://" in text else f"redis://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (host, port) if host and port else None


@rule(
    "ray-redis-tls",
    Severity.LOW,
    what="The data of the GCS is encrypted on the network.",
    why="It contains the password of Redis and the arguments of actors.",
    source=_GUIDE,
    fix="Write rediss://, with a Redis that has TLS; or let a gateway beside the head speak TLS.",
    kinds=_CLUSTERS,
)
def redis_tls(cluster: RayCluster) -> Violations:
    """Requires `rediss://`, or an address of the pod itself."""
    url = _options(cluster).at("redisAddress")
    target = _host_and_port(url.text or "")
    if target and not (url.text or "").startswith("rediss://") and target[0] not in ("127.0.0.1", "localhost", "::1"):
        yield url.wrong(f"{url.shown()} is plain text on the network")


@rule(
    "redis-auth-secretref",
    Severity.CRITICAL,
    what="The password of Redis comes from a Secret.",
    why="Otherwise everybody who may read the RayCluster reads it; without a password every client can act as the GCS.",
    source=_GUIDE,
    fix="Set gcsFaultToleranceOptions.redisPassword.valueFrom.secretKeyRef.",
    kinds=_CLUSTERS,
    cel=of_ray(
        f"({_OPTIONS_IN_CEL}.hasValue() ? {_referenced_in_cel(f'{_OPTIONS_IN_CEL}.?redisPassword')}"
        f" : !{_ENV_IN_CEL}.exists(e, e.name == 'RAY_REDIS_ADDRESS')"
        f" || {_ENV_IN_CEL}.exists(e, e.name == 'REDIS_PASSWORD')"
        f" && {_ENV_IN_CEL}.all(e, e.name != 'REDIS_PASSWORD' || {_referenced_in_cel('e')}))"
        f" && ({_OPTIONS_IN_CEL}.hasValue() ? !{_PARAMETER_IN_CEL}.hasValue()"
        f" : {_PARAMETER_IN_CEL}.orValue('$A').matches({text(VARIABLE)}))"
    ),
)
def password_from_secret(cluster: RayCluster) -> Violations:
    """Requires `valueFrom` and rejects `value`, in the options and in the older form: the head's RAY_REDIS_ADDRESS with
    REDIS_PASSWORD. Messages never show the value."""
    parameter = cluster.spec.at("headGroupSpec", "rayStartParams", "redis-password")
    if _options(cluster).is_set:
        password = _options(cluster).at("redisPassword")
        if parameter.is_set:
            yield parameter.wrong("is a password in a command line")
    else:
        if parameter.is_set and not re.fullmatch(VARIABLE, parameter.text or ""):
            yield parameter.wrong("is a password in a command line")
        redis_address = cluster.head.first.env("RAY_REDIS_ADDRESS")
        if redis_address is None:
            return
        variable = cluster.head.first.env("REDIS_PASSWORD")
        if variable is None:
            yield redis_address.wrong("there is no REDIS_PASSWORD beside it")
            return
        password = variable
    if password.at("value").is_set:
        yield password.at("value").wrong("is a password in plain text")
    elif not password.at("valueFrom", "secretKeyRef").is_set:
        yield password.wrong("is not set")


@rule(
    "ray-reconnect-order",
    Severity.HIGH,
    what="Workers wait longer for the GCS than the head does.",
    why="Otherwise they end before the head is back, and their tasks are lost.",
    source=f"{_GUIDE}; kuberay#1036",
    fix=f"Let {_RECONNECT} of the workers be greater than the head's; KubeRay's own values, 600 and 60, are good.",
    kinds=_CLUSTERS,
)
def reconnect_order(cluster: RayCluster) -> Violations:
    """Compares the variable of each worker group with that of the head."""
    if not _options(cluster).is_set:
        return
    head_seconds, _ = _seconds(cluster.head)
    for pod in cluster.workers():
        seconds, place = _seconds(pod)
        if seconds <= head_seconds:
            yield place.wrong("workers do not wait longer than the head does")


def _seconds(pod: Pod) -> tuple[float, Node]:
    variable = pod.first.env(_RECONNECT)
    if variable is None:
        return _RECONNECT_SECONDS[pod.role], pod.first.node.at("env")
    amount = variable.at("value").quantity
    return float(_RECONNECT_SECONDS[pod.role] if amount is None else amount), variable.at("value")


@rule(
    "ray-storage-namespace-unique",
    Severity.CRITICAL,
    what="No two RayClusters share a storage namespace in one Redis.",
    why="They read each other's tables: actors of one appear in the other, and its clean-up deletes the data of both.",
    source=_GUIDE,
    fix="Remove externalStorageNamespace, which then is the RayCluster's UID, or give each one of its own.",
)
def storage_namespace_unique(stack: Stack) -> Violations:
    """The pair of address and `externalStorageNamespace` is unique."""
    seen: dict[tuple[str | None, str], RayCluster] = {}
    for cluster, storage_namespace in _storage_namespaces(stack):
        key = (_options(cluster).at("redisAddress").text, storage_namespace.text or "")
        other = seen.setdefault(key, cluster)
        if other is not cluster:
            yield storage_namespace.wrong(f"{storage_namespace.shown()} is that of {other.owner} too")


def _storage_namespaces(stack: Stack) -> Iterator[tuple[RayCluster, Node]]:
    for cluster in stack.ray_clusters():
        storage_namespace = _options(cluster).at("externalStorageNamespace")
        if storage_namespace.is_set:
            yield cluster, storage_namespace
