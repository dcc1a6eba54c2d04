"""GCS fault tolerance: only gcsFaultToleranceOptions sets Redis (validation.go: ValidateRayClusterSpec)."""

from .rules import Cluster, Found, problem

ENABLED_ANNOTATION = "ray.io/ft-enabled"
NAMESPACE_ANNOTATION = "ray.io/external-storage-namespace"

_OPTIONS = "gcsFaultToleranceOptions"


def check(cluster: Cluster) -> Found:
    """The rules on the address, the credentials and the storage namespace of Redis."""
    has_options = _OPTIONS in cluster.spec
    annotated = cluster.annotations.get(ENABLED_ANNOTATION, "")
    params_at = (*cluster.path, "headGroupSpec", "rayStartParams")
    params = cluster.spec["headGroupSpec"].get("rayStartParams", {})

    if annotated and has_options:
        message = (
            f"the annotation {ENABLED_ANNOTATION} and {_OPTIONS} both say that the GCS is kept: remove the annotation"
        )
        yield problem("redis-annotation", ("metadata", "annotations", ENABLED_ANNOTATION), annotated, message)
    if address := cluster.head_env("RAY_REDIS_ADDRESS"):
        if has_options:
            message = f"the head's RAY_REDIS_ADDRESS stands beside {_OPTIONS}: say it as its redisAddress alone"
            yield problem("redis-address-env", *address, message)
        elif annotated.lower() != "true":
            message = (
                f"RAY_REDIS_ADDRESS keeps the GCS in Redis without KubeRay knowing: say it as {_OPTIONS}.redisAddress"
            )
            yield problem("redis-address-env", *address, message)
    if has_options:
        if params.get("redis-password"):
            message = f"redis-password stands beside {_OPTIONS}: say it as its redisPassword"
            yield problem("redis-password", (*params_at, "redis-password"), None, message)
        if password := cluster.head_env("REDIS_PASSWORD"):
            message = f"the head's REDIS_PASSWORD stands beside {_OPTIONS}: say it as its redisPassword"
            yield problem("redis-password", password[0], None, message)
        if namespace := cluster.annotations.get(NAMESPACE_ANNOTATION):
            message = f"the annotation stands beside {_OPTIONS}: say it as its externalStorageNamespace"
            yield problem("redis-namespace", ("metadata", "annotations", NAMESPACE_ANNOTATION), namespace, message)
    if user := params.get("redis-username"):
        message = f"KubeRay does not take redis-username: say it as {_OPTIONS}.redisUsername"
        yield problem("redis-username", (*params_at, "redis-username"), user, message)
    if variable := cluster.head_env("REDIS_USERNAME"):
        message = f"KubeRay does not take REDIS_USERNAME: say it as {_OPTIONS}.redisUsername"
        yield problem("redis-username", *variable, message)
