"""Defaults of pods (`podDefaults: secure`). Pure functions.

They meet Pod Security `restricted`, have no Kubernetes token that they do not need, and have a priority. KubeRay adds
containers: the workers' init container and the Job that cleans up Redis have the security context of Ray's container;
the autoscaler has that of `autoscalerOptions` (ray-operator/controllers/ray/common/pod.go).
"""

from typing import Any

from .settings import RayClusterSettings

Body = dict[str, Any]

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

_RESTRICTED: Body = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""The requirements of `restricted` for each container (kubernetes.io, Pod Security Standards)."""

_RESTRICTED_POD: Body = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""The requirements of `restricted` for a pod."""


def ray_container(settings: RayClusterSettings) -> Body:
    """The defaults of a container that runs Ray, and of the autoscaler, before pod templates are merged into it."""
    if settings.pod_defaults == "none":
        return {}
    user = {"runAsUser": settings.run_as_user} if settings.run_as_user != "image" else {}
    return {"securityContext": {**_RESTRICTED, **user}}


def pod(settings: RayClusterSettings, priority_class: str | None) -> Body:
    """The defaults of a pod's spec before pod templates are merged into it. `priority_class`: None for none."""
    if settings.pod_defaults == "none":
        return {}
    priority = {"priorityClassName": priority_class} if priority_class else {}
    return {"securityContext": _RESTRICTED_POD, **priority}


def completed(settings: RayClusterSettings, template: Body) -> Body:
    """The template with defaults that depend on the pod templates that were merged into it.

    Containers without a security context get one. Without a named account the pod gets no token.
    A value that is no template stays unchanged; the CRD's schema refuses it.
    """
    spec = template.get("spec")
    if settings.pod_defaults == "none" or not isinstance(spec, dict):
        return template
    contained = {kind: _restricted(spec[kind]) for kind in ("containers", "initContainers") if kind in spec}
    named = "serviceAccountName" in spec or shows_kubernetes_tokens(settings)
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


def ended_soon(settings: RayClusterSettings, head: Body) -> Body:
    """The template of a head with an autoscaler, with a short grace period if none is set.

    The autoscaler is the first process of its container and does not handle SIGTERM (Ray 2.60), so it ends only when
    the grace period is over. The pod, its Service and a replacing head wait for it. Ray itself ends in two seconds.
    """
    spec = head.get("spec")
    if settings.pod_defaults == "none" or not isinstance(spec, dict):
        return head
    return {**head, "spec": {"terminationGracePeriodSeconds": _HEAD_ENDS_WITHIN, **spec}}


def shows_kubernetes_tokens(settings: RayClusterSettings) -> bool:
    """Whether Ray's processes authenticate to each other by ServiceAccount tokens, which Kubernetes reviews."""
    return bool(settings.auth_options and settings.auth_options.enable_k8s_token_auth)


def _restricted(containers: Any) -> Any:
    if not isinstance(containers, list):
        return containers
    return [{"securityContext": _RESTRICTED, **each} if isinstance(each, dict) else each for each in containers]
