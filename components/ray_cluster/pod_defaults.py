"""What pods get beyond what is said (`podDefaults: secure`). Pure functions.

No more rights than a namespace admits that enforces Pod Security `restricted`, no token of Kubernetes that they do not
need, and a priority. Of the containers that KubeRay adds, the workers' init container and the Job that cleans up Redis
have the security context of Ray's container, and the autoscaler has that of `autoscalerOptions`
(ray-operator/controllers/ray/common/pod.go).
"""

from typing import Any

from .settings import RayClusterSettings

Body = dict[str, Any]

TOKEN_VOLUME = "autoscaler-token"  # noqa: S105 (a volume's name)

_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (where Kubernetes' clients look for theirs)

_TOKEN_SECONDS = 3607
"""How long a token is good, as in the volume that Kubernetes mounts by itself; the kubelet renews it in time."""

_TOKEN: Body = {
    "name": TOKEN_VOLUME,
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ]
    },
}
"""What Kubernetes mounts into a pod by itself: the account's token, and the API server's certificate authority."""

_HEAD_ENDS_WITHIN = 10
"""Seconds."""

_RESTRICTED: Body = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What `restricted` asks of each container (kubernetes.io, Pod Security Standards)."""

_RESTRICTED_POD: Body = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""What `restricted` asks of a pod, for all its containers."""


def ray_container(settings: RayClusterSettings) -> Body:
    """What a container that runs Ray has before a pod template is laid over it; the autoscaler too."""
    if settings.pod_defaults == "none":
        return {}
    user = {"runAsUser": settings.run_as_user} if settings.run_as_user != "image" else {}
    return {"securityContext": {**_RESTRICTED, **user}}


def pod(settings: RayClusterSettings, priority_class: str | None) -> Body:
    """What a pod's spec has before a pod template is laid over it. `priority_class`: None for none."""
    if settings.pod_defaults == "none":
        return {}
    priority = {"priorityClassName": priority_class} if priority_class else {}
    return {"securityContext": _RESTRICTED_POD, **priority}


def completed(settings: RayClusterSettings, template: Body) -> Body:
    """The template with what depends on the pod templates that were laid over it.

    That is a security context for containers that they add without one, and no token where no account was named.
    What is no template at all stays as it is, for the definition's schema to refuse.
    """
    spec = template.get("spec")
    if settings.pod_defaults == "none" or not isinstance(spec, dict):
        return template
    contained = {kind: _restricted(spec[kind]) for kind in ("containers", "initContainers") if kind in spec}
    named = "serviceAccountName" in spec or shows_kubernetes_tokens(settings)
    token = {} if named else {"automountServiceAccountToken": False}
    return {**template, "spec": {**token, **spec, **contained}}


def with_autoscaler_token(settings: RayClusterSettings, head: Body, options: Body) -> tuple[Body, Body]:
    """The head's template and the autoscaler's options, where the pod has no token: with one for the autoscaler alone.

    What people run in the head, such as the drivers of jobs, then has none.
    """
    spec = head.get("spec")
    if settings.pod_defaults == "none" or not isinstance(spec, dict):
        return head, options
    volumes = spec.get("volumes", [])
    if spec.get("automountServiceAccountToken") is not False or not isinstance(volumes, list):
        return head, options
    mounts = [*options.get("volumeMounts", []), {"name": TOKEN_VOLUME, "mountPath": _TOKEN_PATH, "readOnly": True}]
    return {**head, "spec": {**spec, "volumes": [*volumes, _TOKEN]}}, {**options, "volumeMounts": mounts}


def ended_soon(settings: RayClusterSettings, head: Body) -> Body:
    """The template of a head with an autoscaler, where it does not say how long it may take to end: not long.

    The autoscaler, which is its container's first process and has no handler for SIGTERM (Ray 2.60), is ended only when
    that time is over, and the pod, its Service and a head that replaces it wait for it. Ray itself ends in two seconds.
    """
    spec = head.get("spec")
    if settings.pod_defaults == "none" or not isinstance(spec, dict):
        return head
    return {**head, "spec": {"terminationGracePeriodSeconds": _HEAD_ENDS_WITHIN, **spec}}


def shows_kubernetes_tokens(settings: RayClusterSettings) -> bool:
    """Whether Ray's processes show each other the tokens of their accounts, and have Kubernetes review them."""
    return bool(settings.auth_options and settings.auth_options.enable_k8s_token_auth)


def _restricted(containers: Any) -> Any:
    if not isinstance(containers, list):
        return containers
    return [{"securityContext": _RESTRICTED, **each} if isinstance(each, dict) else each for each in containers]
