"""Rules for all objects of a stack, and for how Pulumi creates them."""

from policies.rule import Severity, Violations, rule
from policies.search import inside, is_foreign
from policies.values import WORKS, Object
from policies.walk import Stack

_DEPRECATION = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"

_BECAME_V1 = (
    "admissionregistration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiregistration.k8s.io/v1beta1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1beta1",
    "batch/v1beta1",
    "batch/v2alpha1",
    "certificates.k8s.io/v1beta1",
    "coordination.k8s.io/v1beta1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1beta1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha1",
    "resource.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1beta1",
    "storage.k8s.io/v1beta1",
)

_REMOVED = {
    **{each: f"{each.partition('/')[0]}/v1" for each in _BECAME_V1},
    "extensions/v1beta1": "apps/v1",
    "autoscaling/v2beta1": "autoscaling/v2",
    "autoscaling/v2beta2": "autoscaling/v2",
}
"""API versions that are no longer served, each with its replacement."""

_INSTEAD = {
    "Ingress": "write networking.k8s.io/v1",
    "NetworkPolicy": "write networking.k8s.io/v1",
    "PodSecurityPolicy": "Pod Security replaces it: label namespaces with pod-security.kubernetes.io/enforce",
}
"""What else to do about some kinds."""

_SERVED = (
    "ClusterTrustBundle",
    "IPAddress",
    "LeaseCandidate",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "PodCertificateRequest",
    "SelfSubjectReview",
    "ServiceCIDR",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "VolumeAttributesClass",
)
"""Kinds that came later, in beta versions of the same names."""

_OUTDATED = {"ray.io/v1alpha1": "ray.io/v1"}
"""API versions that are still served but drop newer fields: here authOptions and gcsFaultToleranceOptions."""


@rule(
    "api-not-deprecated",
    Severity.HIGH,
    what="Objects have API versions that are served and that keep all fields.",
    why="Newer clusters do not serve other versions. KubeRay's v1alpha1 silently drops authOptions and other fields.",
    source=f"{_DEPRECATION}; kuberay ray-operator/apis/ray/v1alpha1",
    fix="Write the newer apiVersion, and check the fields that it has renamed.",
)
def api_not_deprecated(owner: Object) -> Violations:
    """Rejects versions that are no longer served and versions that drop fields."""
    api_version = owner.root.at("apiVersion")
    if current := _OUTDATED.get(api_version.text or ""):
        yield api_version.wrong(f"{api_version.shown()} drops newer fields, such as authOptions: write {current}")
    elif (newer := _REMOVED.get(api_version.text or "")) and owner.kind not in _SERVED:
        yield api_version.wrong(f"{api_version.shown()} is gone: {_INSTEAD.get(owner.kind, f'write {newer}')}")


@rule(
    "explicit-names",
    Severity.MEDIUM,
    what="Objects have explicit names.",
    why="Pulumi generates others at random, which people, bindings and Services cannot refer to.",
    source="https://www.pulumi.com/docs/iac/concepts/resources/names/#autonaming",
    fix="Set metadata.name.",
)
def explicit_names(owner: Object) -> Violations:
    """Requires a name. A file may have `generateName` instead, which `kubectl create` accepts."""
    name = owner.root.at("metadata", "name")
    generated = owner.protected is None and owner.root.at("metadata", "generateName").is_set
    if not name.is_set and not generated and not owner.kind.endswith("List"):
        yield name.wrong("is not set")


@rule(
    "unique-objects",
    Severity.HIGH,
    what="No object is defined twice.",
    why="The second overwrites the first, or the update ends with AlreadyExists.",
    source="https://kubernetes.io/docs/concepts/overview/working-with-objects/names/",
    fix="Remove one, or give it another name or namespace.",
)
def unique_objects(stack: Stack) -> Violations:
    """No two objects for the same cluster have the same group, kind, namespace and name."""
    seen: dict[tuple[str | None, ...], Object] = {}
    for owner in stack.objects:
        if not owner.root.at("metadata", "name").is_set:
            continue
        other = seen.setdefault((_cluster(owner), owner.group, owner.kind, owner.namespace, owner.name), owner)
        if other is not owner:
            yield owner.root.at("metadata", "name").wrong(f"{owner} is defined twice")


def _cluster(owner: Object) -> str | None:
    """The namespace that stands for the cluster of an object; None for the cluster of the stack."""
    if owner.within is None:
        return None
    return owner.within.namespace if owner.within.kind in WORKS else _cluster(owner.within)


@rule(
    "kind-judged",
    Severity.LOW,
    what="Rules look into the objects of every kind.",
    why="What an operator makes of other objects is not judged before it runs: pods, and clusters of Ray.",
    source="policies/search.py",
    fix="Judge what the operator creates, or enforce rules in the cluster; except the kind if it creates no pods.",
)
def kind_judged(stack: Stack) -> Violations:
    """Reports kinds, other than Kubernetes', KubeRay's, Volcano's and Kueue's own, in which there is no object, no
    RayCluster and no pod that a rule could look into. Each kind once."""
    seen: dict[tuple[str, str], list[Object]] = {}
    for owner in stack.objects:
        if is_foreign(owner) and not any(inside(owner)):
            seen.setdefault((owner.group, owner.kind), []).append(owner)
    for (group, kind), owners in seen.items():
        count = f"{len(owners)} objects" if len(owners) > 1 else "the object"
        yield owners[0].root.at("kind").wrong(f"no rule looks into {kind.partition('.')[0]} of {group}: {count}")


@rule(
    "protect-stateful",
    Severity.LOW,
    what="Pulumi refuses to delete objects with data.",
    why="A renamed resource is deleted and recreated, and its volume with it.",
    source="https://www.pulumi.com/docs/iac/concepts/resources/options/protect/",
    fix="Set protect=True on PersistentVolumeClaims; a StatefulSet keeps its claims with whenDeleted: Retain.",
    kinds=("PersistentVolumeClaim", "StatefulSet"),
)
def protect_stateful(owner: Object) -> Violations:
    """Requires `protect`, or a retention policy that keeps the claims."""
    kept = owner.root.at("spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted").text != "Delete"
    if owner.protected is False and (owner.kind == "PersistentVolumeClaim" or not kept):
        yield owner.root.at("metadata", "name").wrong("may be deleted with its data")


@rule(
    "pdb-lets-drain",
    Severity.MEDIUM,
    what="PodDisruptionBudgets allow nodes to be drained.",
    why="A budget that allows no disruption of several pods blocks every upgrade of nodes.",
    source="https://kubernetes.io/docs/tasks/run-application/configure-pdb/",
    fix="Set maxUnavailable: 1. A budget for the one head of a RayCluster may keep it.",
    kinds=("PodDisruptionBudget",),
)
def lets_drain(owner: Object) -> Violations:
    """Rejects budgets that allow no disruption, in numbers or percent. The rule skips budgets for heads."""
    spec = owner.root.at("spec")
    if spec.at("selector", "matchLabels", "ray.io/node-type").text == "head":
        return
    for key, stuck in (("maxUnavailable", ("0", "0%")), ("minAvailable", ("100%",))):
        if spec.at(key).text in stuck:
            yield spec.at(key).wrong(f"is {spec.at(key).shown()}: no pod may be evicted")
