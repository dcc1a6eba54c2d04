"""Authentication by token: which Ray has it, and what goes together (validation.go: ValidateRayClusterSpec)."""

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
    """Kubernetes' tokens are for a RayCluster by itself (ValidateRayJobSpec, ValidateRayServiceSpec)."""
    if cluster.spec.get("authOptions", {}).get("enableK8sTokenAuth"):
        message = f"a {kind} cannot have enableK8sTokenAuth: remove it, a secretName is possible"
        yield problem("auth-kubernetes-token", (*cluster.path, "authOptions", "enableK8sTokenAuth"), True, message)


def _ray_version(cluster: Cluster, kubernetes: bool) -> Found:
    said = cluster.spec.get("rayVersion", "")
    version = generic_version(said)
    least, what = (
        (KUBERNETES_TOKENS_SINCE, "enableK8sTokenAuth") if kubernetes else (TOKENS_SINCE, "authOptions.mode token")
    )
    if version is None or older(version, least):
        wanted = ".".join(map(str, least))
        state = f"is {said!r}" if said else "is not set"
        message = f"{what} needs Ray {wanted} or later and rayVersion {state}: set rayVersion, or set mode to disabled"
        yield problem("auth-ray-version", (*cluster.path, "rayVersion"), said or None, message)
