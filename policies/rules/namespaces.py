"""Namespaces: Pod Security levels, quotas and owners."""

from core.types import Settings
from policies.rule import Severity, Violations, rule
from policies.rules import remedies
from policies.values import Node, Object
from policies.walk import Stack

_PSA = "https://kubernetes.io/docs/concepts/security/pod-security-admission/"


class PodSecurity(Settings):
    """Options of ns-psa-labels."""

    levels: tuple[str, ...] = ("restricted", "baseline")
    """Levels that may be enforced."""


@rule(
    "ns-psa-labels",
    Severity.HIGH,
    what="Namespaces enforce a level of Pod Security.",
    why="Policies see no pod that an operator creates. Pod Security refuses it whoever creates it.",
    source=_PSA,
    fix="Set label pod-security.kubernetes.io/enforce: restricted.",
    kinds=("Namespace",),
)
def pod_security(owner: Object, options: PodSecurity) -> Violations:
    """One of the levels is enforced."""
    level = owner.label("pod-security.kubernetes.io/enforce")
    if level.text not in options.levels:
        yield level.wrong(f"is {level.shown()}" if level.is_set else "is not set")


@rule(
    "ns-not-default",
    Severity.MEDIUM,
    what="No Ray object is in namespace default.",
    why="Quotas, policies and rights apply to namespaces, and all users share `default`.",
    source="https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/",
    fix="Create a namespace for each team and set metadata.namespace.",
    kinds=("RayCluster", "RayJob", "RayService", "RayCronJob", "StatefulSet", "Deployment", "Job", "CronJob"),
)
def not_default(owner: Object) -> Violations:
    """Rejects `default`. A resource of Pulumi without a namespace is in `default` too."""
    namespace = owner.root.at("metadata", "namespace")
    if namespace.text == "default" or (owner.protected is not None and not namespace.text):
        yield namespace.wrong("is default")


@rule(
    "ns-quota",
    Severity.LOW,
    what="Namespaces of teams have a quota.",
    why="Otherwise one team's autoscaler takes all GPUs, unless queues divide them.",
    source="https://kubernetes.io/docs/concepts/policy/resource-quotas/",
    fix="Add a ResourceQuota with requests.nvidia.com/gpu and pods.",
)
def quota(stack: Stack) -> Violations:
    """Requires a ResourceQuota in each namespace with a RayCluster."""
    with_quota = {each.namespace or "default" for each in stack.of("ResourceQuota")}
    for namespace, cluster in stack.ray_namespaces().items():
        if namespace not in with_quota:
            yield cluster.owner.root.at("metadata", "namespace").wrong("has no ResourceQuota")


class OwnerLabels(Settings):
    """Options of ns-owner."""

    keys: tuple[str, ...] = ("ray-platform/owner", "ray-platform/tenant", "app.kubernetes.io/name", "owner", "team")
    """Labels of which at least one must be set."""


@rule(
    "ns-owner",
    Severity.LOW,
    what="Namespaces have a label with their owner.",
    why="Whoever finds a failed or idle cluster must know whom to ask.",
    source="https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/",
    fix="Set a label with the team's name.",
    kinds=("Namespace",),
)
def owner_label(owner: Object, options: OwnerLabels) -> Violations:
    """Requires one of the labels."""
    if not any(owner.label(key).text for key in options.keys):
        yield owner.root.at("metadata", "labels").wrong(f"none of {', '.join(options.keys)} is set")


class TeamLabels(Settings):
    """Options of ray-one-tenant-per-namespace."""

    keys: tuple[str, ...] = ("ray-platform/owner", "ray-platform/tenant", "owner", "team")
    """Labels of RayClusters, RayJobs and RayServices that name their team."""


@rule(
    "ray-one-tenant-per-namespace",
    Severity.HIGH,
    what="All Ray clusters of a namespace belong to one team.",
    why="Whoever may create pods or RayJobs there has all its tokens and Secrets, and Ray trusts every client.",
    source="https://docs.ray.io/en/latest/ray-security/index.html; https://kubernetes.io/docs/concepts/security/multi-tenancy/",
    fix="Give each team a namespace of its own.",
)
def one_tenant(stack: Stack, options: TeamLabels) -> Violations:
    """The labels of all Ray objects in a namespace name the same team. Objects without such a label are skipped."""
    seen: dict[tuple[str, str], Node] = {}
    for cluster in stack.ray_clusters():
        for key in options.keys:
            label = cluster.owner.label(key)
            if label.text:
                other = seen.setdefault((cluster.owner.namespace or "default", key), label)
                if other.text != label.text:
                    yield label.wrong(f"is {label.shown()}, and {other.shown()} at {other.owner}")


@rule(
    "ns-psa-warns",
    Severity.LOW,
    what="Namespaces warn of what they refuse.",
    why="A refused pod of a RayCluster is hard to notice; whoever applies a Deployment or a Job sees a warning.",
    source=_PSA,
    fix="Set label pod-security.kubernetes.io/warn to the level that is enforced.",
    kinds=("Namespace",),
    remedy=remedies.warn_of_what_is_enforced,
)
def pod_security_warns(owner: Object) -> Violations:
    """The warned level is the enforced level."""
    enforced = owner.label("pod-security.kubernetes.io/enforce").text
    warned = owner.label("pod-security.kubernetes.io/warn")
    if enforced and warned.text != enforced:
        yield warned.wrong(f"is {warned.shown()}" if warned.is_set else "is not set")
