"""Remedies of rules: what Pulumi's remediation puts into a resource before it is made.

A remedy says what was left out, and only where Kubernetes takes it and nothing can depend on its absence. It never
changes what somebody has said: that may be meant, and blocks as before.
"""

from ..rule import Changes
from ..values import Node, Object
from ..walk import Container, RayCluster


def in_force(container: Container, *steps: str) -> Node:
    """What holds for a container: what its security context says, or else its pod's."""
    own = container.node.at("securityContext", *steps)
    return own if own.said else container.pod.spec.at("securityContext", *steps)


def no_privilege_escalation(container: Container) -> Changes:
    """Says `allowPrivilegeEscalation: false`, unless the container is privileged or adds SYS_ADMIN: Kubernetes refuses
    the two together."""
    said = container.node.at("securityContext", "allowPrivilegeEscalation")
    added = {each.text for each in container.node.at("securityContext", "capabilities", "add").items()}
    privileged = container.node.at("securityContext", "privileged").value is True
    if not said.said and not privileged and not added & {"SYS_ADMIN", "CAP_SYS_ADMIN"}:
        yield said.change(False)


def drop_all(container: Container) -> Changes:
    """Says `drop: [ALL]` where `runAsNonRoot` holds: who is not root has none of them in effect."""
    said = container.node.at("securityContext", "capabilities", "drop")
    if not said.said and in_force(container, "runAsNonRoot").value is True:
        yield said.change(["ALL"])


def runtime_default(container: Container) -> Changes:
    """Says `seccompProfile.type: RuntimeDefault` in the container."""
    if not in_force(container, "seccompProfile").said:
        yield container.node.at("securityContext", "seccompProfile", "type").change("RuntimeDefault")


def no_token_in_workers(cluster: RayCluster) -> Changes:
    """Says `automountServiceAccountToken: false` for workers that name no ServiceAccount of their own."""
    if cluster.spec.at("authOptions", "enableK8sTokenAuth").value is True:
        return
    for pod in cluster.workers():
        said = pod.spec.at("automountServiceAccountToken")
        if not said.said and not pod.spec.at("serviceAccountName").said:
            yield said.change(False)


def background_delete(cluster: RayCluster) -> Changes:
    """Says the annotation."""
    said = cluster.owner.annotation("pulumi.com/deletionPropagationPolicy")
    if not said.said:
        yield said.change("background")


def warn_of_what_is_enforced(owner: Object) -> Changes:
    """Says the level that is enforced."""
    enforced = owner.label("pod-security.kubernetes.io/enforce").text
    warned = owner.label("pod-security.kubernetes.io/warn")
    if enforced and not warned.said:
        yield warned.change(enforced)
