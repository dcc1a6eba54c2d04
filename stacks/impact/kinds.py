"""What creating, changing or deleting an object other than a RayCluster means for running pods. Data, by kind.

Roles and their bindings are not included: `rights` shows what each subject gains or loses through them, and a line for
the object would repeat that.
"""

from dataclasses import dataclass

from kuberay.edits import Verdict

AS_RIGHTS = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
"""Kinds that `rights` shows."""


@dataclass(frozen=True)
class Fixed:
    """Immutable fields of a kind's spec: Pulumi deletes and recreates the object."""

    fields: frozenset[str]
    replaced: str
    reason: str
    safer: str
    source: str


@dataclass(frozen=True)
class Kind:
    """What edits of its objects mean for running pods."""

    made: str
    changed: str
    gone: str
    losing: Verdict = Verdict.IN_PLACE
    """The verdict of its deletion. If it is not the default, the object is shown even if its owner is shown."""
    safer: str = ""
    """How to delete it safely."""
    fixed: Fixed | None = None


_VALIDATION = "kubernetes pkg/apis/apps/validation/validation.go: ValidateStatefulSetUpdate"
_OF_CLAIMS = "kubernetes pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimUpdate"

KINDS = {
    "Namespace": Kind(
        "is made, with all that belongs in it",
        "pods that run stay; with a stricter Pod Security level, new ones that do not keep to it are refused",
        "is deleted with everything in it: RayClusters, their pods, Secrets, tokens, volumes",
        Verdict.DELETES,
        "end what runs there first; a tenant that still runs something is not removed without allowDelete",
    ),
    "ResourceQuota": Kind(
        "bounds what is in the namespace from now on; what is there beyond it stays, and nothing new starts until it "
        "has gone",
        "holds from now on; what is there beyond it stays, and nothing new starts until it has gone",
        "nothing bounds the namespace any more",
    ),
    "LimitRange": Kind(
        "holds for pods that are made from now on",
        "holds for pods that are made from now on",
        "pods that are made from now on have no default amounts",
    ),
    "NetworkPolicy": Kind(
        "holds at once, for what runs, too: connections that no policy allows are cut",
        "holds at once, for what runs, too: connections that it allows no more are cut",
        "connections that no other policy allows are cut at once",
    ),
    "Ingress": Kind(
        "the dashboard and the jobs API can be reached under its host, by all whom the ingress controller lets in",
        "holds as soon as the ingress controller has read it; what runs goes on",
        "the dashboard and the jobs API cannot be reached under its host any more; what runs goes on",
    ),
    "ServiceAccount": Kind(
        "is there for pods that are made from now on",
        "holds for pods that are made from now on",
        "pods that run as it go on, and the API server knows them no more; none can be made with it",
    ),
    "PriorityClass": Kind(
        "is there for pods that are made from now on",
        "holds for pods that are made from now on",
        "pods that run keep their priority; none can be made with it",
    ),
    "PodDisruptionBudget": Kind(
        "the head, or with Redis more than one of its nodes at a time, is not evicted any more when nodes are drained",
        "holds at once",
        "the head may be evicted when its node is drained, and what runs on its RayCluster ends then",
    ),
    "Certificate": Kind(
        "cert-manager makes a certificate; pods that need it wait for it",
        "cert-manager makes another certificate; pods that run keep what they have read",
        "cert-manager renews the certificate no more; pods that run keep what they have read",
    ),
    "ValidatingAdmissionPolicy": Kind(
        "the API server holds objects that are made or changed from now on against it; what runs stays",
        "holds within seconds for objects that are made or changed; what runs stays",
        "the API server holds nothing against it any more",
    ),
    "ValidatingAdmissionPolicyBinding": Kind(
        "its policy is enforced where it says, within seconds; what runs stays",
        "holds within seconds for objects that are made or changed; what runs stays, and may be changed and ended",
        "its policy is enforced no more",
    ),
    "Queue": Kind(
        "is there for RayClusters to wait in",
        "holds for what waits; what runs stays, unless other queues may reclaim what it has beyond its share",
        "is deleted; `pulumi up` refuses while a RayCluster names it",
        Verdict.REFUSED,
        "move its RayClusters to another queue in an `up` of its own, and remove it then",
    ),
    "ClusterQueue": Kind(
        "is there for RayClusters to wait in",
        "holds for what waits; what runs stays, unless other queues may reclaim what it has borrowed",
        "is deleted; `pulumi up` refuses while a RayCluster names it",
        Verdict.REFUSED,
        "another queue means that a RayCluster is made anew: do it when nothing runs, and remove the queue then",
    ),
    "LocalQueue": Kind(
        "RayClusters of the namespace may wait in the queue",
        "holds for what waits; what runs stays",
        "RayClusters of the namespace are let in by this queue no more; what runs stays",
    ),
    "Cohort": Kind(
        "its queues may borrow from each other",
        "holds for what waits; what runs stays, unless other queues may reclaim what it has borrowed",
        "its queues borrow from each other no more; what runs stays, unless it is reclaimed",
    ),
    "ResourceFlavor": Kind(
        "queues may have quotas of these nodes",
        "holds for what is let in from now on",
        "queues have no quota of these nodes any more; what runs stays",
    ),
    "StatefulSet": Kind(
        "Redis is made",
        "Redis' pods are made anew one after the other, and another becomes the primary: RayClusters with fault "
        "tolerance lose their connection for seconds",
        "Redis is deleted: RayClusters that keep their tables in it fail within a minute",
        Verdict.DELETES,
        "remove the RayClusters with fault tolerance in an `up` of its own first",
        Fixed(
            frozenset({"serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates"}),
            "all of Redis' pods end at once, and are made anew on the volumes that they had; RayClusters with fault "
            "tolerance stand still meanwhile, and fail if it takes more than a minute",
            "Kubernetes does not change these fields of a StatefulSet",
            "do it when nothing runs",
            _VALIDATION,
        ),
    ),
    "Service": Kind(
        "Redis' nodes are found by its name",
        "holds at once; connections that there are stay",
        "Redis' nodes are found by its name no more",
    ),
    "ConfigMap": Kind(
        "is there for Redis' pods that are made from now on",
        "holds for Redis' pods that are made from now on",
        "Redis' pods that are made from now on do not start without it",
    ),
    "CronJob": Kind(
        "runs at its times from now on, or where it is suspended when somebody asks for it; Redis goes on meanwhile",
        "holds from its next run on; what runs goes on",
        "runs no more; copies that there are stay as long as their volume",
    ),
    "PersistentVolumeClaim": Kind(
        "a volume for copies of Redis' data is made",
        "the volume grows where its StorageClass allows that; otherwise `pulumi up` fails, as it does for less",
        "the copies of Redis' data are deleted with their volume, unless its StorageClass retains it",
        Verdict.DELETES,
        "copy them elsewhere first",
        Fixed(
            frozenset({"accessModes", "storageClassName", "selector", "volumeName"}),
            "the copies of Redis' data are deleted with their volume, and an empty one is made",
            "Kubernetes does not change these fields of a PersistentVolumeClaim",
            "copy them elsewhere first",
            _OF_CLAIMS,
        ),
    ),
}
