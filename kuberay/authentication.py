"""Authentication by token: the versions of Ray, and valid combinations (validation.go: ValidateRayClusterSpec)."""

from .formats import generic_version, older
from .rules import Cluster, Found, problem

TOKENS_SINCE = (2, 52, 0)
KUBERNETES_TOKENS_SINCE = (2, 55, 0)


def check(cluster: Cluster) -> Found:
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


def unsupported(cluster: Cluster, kind: str) -> Found:
    """Only standalone RayClusters can use Kubernetes tokens (ValidateRayJobSpec, ValidateRayServiceSpec)."""
    if cluster.spec.get("authOptions", {}).get("enableK8sTokenAuth"):
        message = f"a {kind} cannot have enableK8sTokenAuth: remove it, a secretName is possible"
        yield problem("auth-kubernetes-token", (*cluster.path, "authOptions", "enableK8sTokenAuth"), True, message)


def _ray_version(cluster: Cluster, kubernetes: bool) -> Found:
    ray_version = cluster.spec.get("rayVersion", "")
    version = generic_version(ray_version)
    least, setting = (
        (KUBERNETES_TOKENS_SINCE, "enableK8sTokenAuth") if kubernetes else (TOKENS_SINCE, "authOptions.mode token")
    )
    if version is None or older(version, least):
        required = ".".join(map(str, least))
        state = f"is {ray_version!r}" if ray_version else "is not set"
        message = (
            f"{setting} needs Ray {required} or later and rayVersion {state}: set rayVersion, or set mode to disabled"
        )
        yield problem("auth-ray-version", (*cluster.path, "rayVersion"), ray_version or None, message)
