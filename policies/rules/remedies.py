"""Remedies of rules: the fields that Pulumi's remediation adds to a resource before it is created.

A remedy sets a missing field, and only where Kubernetes accepts it and nothing can depend on its absence. It never
changes a field that is set: the value may be intended, and the violation blocks as before.
"""

from core.pods import PROFILES
from policies.rule import Changes
from policies.values import Node, Object
from policies.walk import Container, RayCluster


def in_force(container: Container, *steps: str) -> Node:
    """The effective value for a container: its own security context, or else that of its pod."""
    own = container.node.at("securityContext", *steps)
    return own if own.is_set else container.pod.spec.at("securityContext", *steps)


def no_privilege_escalation(container: Container) -> Changes:
    """Sets `allowPrivilegeEscalation: false`, unless the container is privileged or adds SYS_ADMIN: Kubernetes refuses
    the two together."""
    escalation = container.node.at("securityContext", "allowPrivilegeEscalation")
    added = {each.text for each in container.node.at("securityContext", "capabilities", "add").items()}
    privileged = container.node.at("securityContext", "privileged").value is True
    if not escalation.is_set and not privileged and not added & {"SYS_ADMIN", "CAP_SYS_ADMIN"}:
        yield escalation.change(False)


def drop_all(container: Container) -> Changes:
    """Sets `drop: [ALL]` if `runAsNonRoot` applies: only root has capabilities in effect."""
    dropped = container.node.at("securityContext", "capabilities", "drop")
    if not dropped.is_set and in_force(container, "runAsNonRoot").value is True:
        yield dropped.change(["ALL"])


def runtime_default(container: Container) -> Changes:
    """Sets `seccompProfile.type: RuntimeDefault` in the container."""
    if not in_force(container, "seccompProfile").is_set:
        yield container.node.at("securityContext", "seccompProfile", "type").change(PROFILES[0])


def no_token_in_workers(cluster: RayCluster) -> Changes:
    """Sets `automountServiceAccountToken: false` for workers that name no ServiceAccount of their own."""
    if cluster.spec.at("authOptions", "enableK8sTokenAuth").value is True:
        return
    for pod in cluster.workers():
        automount = pod.spec.at("automountServiceAccountToken")
        if not automount.is_set and not pod.spec.at("serviceAccountName").is_set:
            yield automount.change(False)


def background_delete(cluster: RayCluster) -> Changes:
    """Sets the annotation."""
    propagation = cluster.owner.annotation("pulumi.com/deletionPropagationPolicy")
    if not propagation.is_set:
        yield propagation.change("background")


def warn_of_what_is_enforced(owner: Object) -> Changes:
    """Sets the level that is enforced."""
    enforced = owner.label("pod-security.kubernetes.io/enforce").text
    warned = owner.label("pod-security.kubernetes.io/warn")
    if enforced and not warned.is_set:
        yield warned.change(enforced)
