"""What an account for Ray's pods becomes in Kubernetes. Pure functions."""

from typing import Any

from .settings import RayDeployerSettings

Body = dict[str, Any]

VERBS = ["get", "list", "watch", "create", "delete", "update", "patch"]

RULES: list[Body] = [
    {"apiGroups": [""], "resources": ["pods", "services"], "verbs": VERBS},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": VERBS},
    {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": VERBS},
]
"""Monitoring, creating, deleting and updating of pods, Deployments, Services and RayClusters: what ado's guide for
actuators that deploy to Kubernetes asks for. No Secrets, no pods/exec, nothing outside the namespace."""


def service_account(settings: RayDeployerSettings) -> Body:
    """The ServiceAccount."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": settings.service_account}}


def role(settings: RayDeployerSettings) -> Body:
    """The Role."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": settings.role},
        "rules": RULES,
    }


def role_binding(settings: RayDeployerSettings, namespace: Any) -> Body:
    """The RoleBinding. `namespace`: that of the account, a name or what will become one."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": settings.role_binding},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": settings.role},
        "subjects": [{"kind": "ServiceAccount", "name": settings.service_account, "namespace": namespace}],
    }
