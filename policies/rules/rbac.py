"""Who may do what with Kubernetes' API."""

import re
from collections.abc import Iterator

from core.types import Settings
from policies.rule import Severity, Violations, rule
from policies.values import Node, Object
from policies.walk import Pod, RayCluster, Stack

_GOOD_PRACTICES = "https://kubernetes.io/docs/concepts/security/rbac-good-practices/"
_ROLES = ("Role", "ClusterRole")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_CREATE_VERBS = {"create", "delete", "deletecollection", "*"}
_CREATING = {
    "": {"pods", "replicationcontrollers"},
    "apps": {"deployments", "statefulsets", "daemonsets", "replicasets"},
    "batch": {"jobs", "cronjobs"},
    "rbac.authorization.k8s.io": {"roles", "rolebindings"},
}
"""Resources that create pods or grant rights, by API group. Pods can use any ServiceAccount of their namespace."""
_CONSTRAINED = ("impersonate:", "impersonate-on:")
"""Verbs of constrained impersonation (k8s.io/apiserver: pkg/endpoints/filters/impersonation)."""
_WRITE_VERBS = {"create", "update", "patch", "delete", "deletecollection", "*"}


def _rules(owner: Object) -> Iterator[Node]:
    return owner.root.at("rules").items()


def _is(resource: Node, name: str) -> bool:
    """Whether a resource of a rule is this subresource: `pods/exec`, or `*/exec`."""
    return resource.text in (name, f"*/{name.partition('/')[2]}")


def _words(rule_: Node, key: str) -> set[str | None]:
    return {each.text for each in rule_.at(key).items()}


class Wildcards(Settings):
    """Options of rbac-no-wildcard."""

    allowed: tuple[str, ...] = ()
    """Names of Roles and ClusterRoles that may have them."""


@rule(
    "rbac-no-wildcard",
    Severity.HIGH,
    what="Roles list what they allow.",
    why="`*` also allows what is added later: new verbs, new kinds, Secrets.",
    source=f"{_GOOD_PRACTICES}#least-privilege",
    fix="List the verbs and resources.",
    kinds=_ROLES,
)
def no_wildcard(owner: Object, options: Wildcards) -> Violations:
    """Rejects `*` in verbs and resources."""
    if owner.name in options.allowed:
        return
    for each in _rules(owner):
        for key in ("verbs", "resources"):
            for word in each.at(key).items():
                if word.text == "*":
                    yield word.wrong(f"allows all {key}")


@rule(
    "rbac-no-cluster-admin",
    Severity.CRITICAL,
    what="Nobody is an administrator of the whole cluster.",
    why="No part of Ray needs it, and an operator with it gives access to everything.",
    source=f"{_GOOD_PRACTICES}#least-privilege",
    fix="Bind a ClusterRole with the rules that are needed.",
    kinds=_BINDINGS,
)
def no_cluster_admin(owner: Object) -> Violations:
    """Rejects bindings to `cluster-admin`, and those of `admin` and `edit` in all namespaces."""
    name = owner.root.at("roleRef", "name")
    everywhere = ("admin", "edit") if owner.kind == "ClusterRoleBinding" else ()
    own = owner.root.at("roleRef", "kind").text == "Role"
    if not own and name.text in ("cluster-admin", *everywhere):
        yield name.wrong(f"binds {name.text}{' in all namespaces' if everywhere else ''}")


@rule(
    "rbac-no-escalate",
    Severity.CRITICAL,
    what="Roles allow nobody to grant rights or to impersonate others.",
    why="Whoever may escalate, bind or impersonate has every right.",
    source=f"{_GOOD_PRACTICES}#escalate-verb",
    fix="Remove the verbs escalate, bind and impersonate, and serviceaccounts/token.",
    kinds=_ROLES,
)
def no_escalate(owner: Object) -> Violations:
    """Rejects the three verbs, those of constrained impersonation such as `impersonate:user-info` (Kubernetes 1.36),
    and the creation of tokens of accounts.
    """
    for each in _rules(owner):
        for resource in each.at("resources").items():
            if _is(resource, "serviceaccounts/token") and _words(each, "verbs") & {"create", "*"}:
                yield resource.wrong(f"allows {resource.shown()}: with a token of an account one has its rights")
        for verb in each.at("verbs").items():
            if verb.text in ("escalate", "bind", "impersonate") or (verb.text or "").startswith(_CONSTRAINED):
                yield verb.wrong(f"allows {verb.shown()}")


@rule(
    "rbac-no-exec",
    Severity.HIGH,
    what="Roles allow nobody to enter running containers.",
    why="Whoever may exec into a head has its token, its Redis password and its account.",
    source=f"{_GOOD_PRACTICES}#privilege-escalation-risks",
    fix="Remove pods/exec and pods/attach; Ray's jobs and client need neither.",
    kinds=_ROLES,
)
def no_exec(owner: Object) -> Violations:
    """Rejects `pods/exec`, `pods/attach` and `pods/ephemeralcontainers`."""
    for each in _rules(owner):
        for resource in each.at("resources").items():
            if any(_is(resource, f"pods/{name}") for name in ("exec", "attach", "ephemeralcontainers")):
                yield resource.wrong(f"allows {resource.shown()}")


@rule(
    "rbac-no-node-proxy",
    Severity.HIGH,
    what="Roles allow nobody to call kubelets.",
    why="A kubelet runs commands in every pod of its node, and no audit log shows it.",
    source=f"{_GOOD_PRACTICES}#access-to-proxy-subresource-of-nodes",
    fix="Remove nodes/proxy.",
    kinds=_ROLES,
)
def no_node_proxy(owner: Object) -> Violations:
    """Rejects `nodes/proxy`."""
    for each in _rules(owner):
        for resource in each.at("resources").items():
            if _is(resource, "nodes/proxy"):
                yield resource.wrong(f"allows {resource.shown()}")


@rule(
    "rbac-no-everybody",
    Severity.CRITICAL,
    what="Rights are granted to named subjects, not to everybody.",
    why="system:unauthenticated includes the internet if the API server is reachable from there.",
    source=f"{_GOOD_PRACTICES}#minimize-distribution-of-privileged-tokens",
    fix="Name the users, groups or ServiceAccounts.",
    kinds=_BINDINGS,
)
def no_everybody(owner: Object) -> Violations:
    """Rejects the groups that contain everybody, all pods or all pods of a namespace, and `system:masters`, which
    bypasses RBAC."""
    everybody = ("system:anonymous", "system:unauthenticated", "system:authenticated", "system:masters")
    for subject in owner.root.at("subjects").items():
        name = subject.at("name").text or ""
        if name in (*everybody, "system:serviceaccounts") or name.startswith("system:serviceaccounts:"):
            yield subject.at("name").wrong(f"gives rights to {subject.at('name').shown()}")


@rule(
    "rbac-no-default-account",
    Severity.MEDIUM,
    what="Rights are granted to dedicated accounts, not to `default`.",
    why="Every pod that names no account has the rights of `default`.",
    source=f"{_GOOD_PRACTICES}#least-privilege",
    fix="Create a ServiceAccount and name it in the pods.",
    kinds=_BINDINGS,
)
def no_default_account(owner: Object) -> Violations:
    """Rejects ServiceAccount `default`, also as user `system:serviceaccount:NAMESPACE:default`."""
    for subject in owner.root.at("subjects").items():
        account = subject.at("kind").text == "ServiceAccount"
        name = subject.at("name").text or ""
        user = name if account else re.sub(r"^system:serviceaccount:[^:]+:", "", name) if ":" in name else ""
        if user == "default":
            yield subject.at("name").wrong("is the account of every pod that names no other")


class Operators(Settings):
    """Options of rbac-no-secrets-everywhere."""

    allowed: tuple[str, ...] = ("kuberay-operator", "volcano-controllers")
    """ClusterRoles that need it: KubeRay reads the tokens of the RayClusters that it serves, and Volcano's controllers
    give the pods of its Jobs keys for SSH."""


@rule(
    "rbac-no-secrets-everywhere",
    Severity.HIGH,
    what="Nobody reads the Secrets of all namespaces.",
    why="They contain the tokens of every tenant's clusters.",
    source=f"{_GOOD_PRACTICES}#listing-secrets",
    fix="Use a Role in the necessary namespaces, or resourceNames.",
    kinds=("ClusterRole",),
)
def no_secrets_everywhere(owner: Object, options: Operators) -> Violations:
    """Rejects get, list and watch of Secrets without resourceNames."""
    if owner.name in options.allowed:
        return
    for each in _rules(owner):
        reads = _words(each, "verbs") & {"get", "list", "watch", "*"}
        secrets = _words(each, "apiGroups") & {"", "*"} and "secrets" in _words(each, "resources")
        if reads and secrets and not list(each.at("resourceNames").items()):
            yield each.at("resources").wrong("reads Secrets, in all namespaces where it is bound everywhere")


@rule(
    "rbac-operator-namespaced",
    Severity.LOW,
    what="The KubeRay operator has rights in the namespaces that it serves.",
    why="It creates pods and accounts, and reads tokens: bound everywhere, its account has access to every namespace.",
    source="kuberay helm-chart/kuberay-operator/values.yaml: watchNamespace, crNamespacedRbacEnable",
    fix="Start it with --watch-namespace and bind a Role in each, or set `operator.watchNamespaces` in a stack file.",
)
def operator_namespaced(stack: Stack) -> Violations:
    """Rejects a ClusterRoleBinding to a ClusterRole that writes the status of RayClusters, as only operators do."""
    operators = {
        each.name
        for each in stack.of("ClusterRole")
        for rule_ in _rules(each)
        if "rayclusters/status" in _words(rule_, "resources") and _words(rule_, "verbs") & _WRITE_VERBS
    }
    for binding in stack.of("ClusterRoleBinding"):
        bound = binding.root.at("roleRef", "name")
        if bound.text in operators:
            yield bound.wrong(f"{bound.shown()} holds in all namespaces")


@rule(
    "ray-role-minimal",
    Severity.HIGH,
    what="The account of a RayCluster's pods may do what the autoscaler does, and no more.",
    why="Programs that run in Ray can use it: with Secrets or new pods they leave their cluster.",
    source="kuberay ray-operator/controllers/ray/common/rbac.go: BuildRole; kuberay#1416",
    fix="Remove Secrets, pods/exec and the creation of pods and roles from its Roles.",
)
def role_minimal(stack: Stack) -> Violations:
    """Judges the Roles of the stack that are bound to the ServiceAccounts of RayCluster pods."""
    accounts = {
        (cluster.owner.namespace, _account(cluster, pod)) for cluster in stack.ray_clusters() for pod in cluster.pods()
    }
    roles = {(each.kind, each.namespace, each.name): each for each in stack.of(*_ROLES)}
    for binding in stack.of(*_BINDINGS):
        subjects = {
            (subject.at("namespace").text or binding.namespace, subject.at("name").text)
            for subject in binding.root.at("subjects").items()
            if subject.at("kind").text == "ServiceAccount"
        }
        reference = binding.root.at("roleRef")
        kind = reference.at("kind").text or "Role"
        role_ = roles.get((kind, binding.namespace if kind == "Role" else None, reference.at("name").text))
        if role_ is not None and accounts & subjects:
            yield from _too_much(role_)


def _account(cluster: RayCluster, pod: Pod) -> str | None:
    """The account of a pod; None if it has no token of one, or if its name is not known before KubeRay makes it."""
    named = pod.spec.at("serviceAccountName").text
    if named or pod.spec.at("automountServiceAccountToken").value is False:
        return named
    if pod.role == "head" and cluster.scales:
        return cluster.owner.name if cluster.owner.kind == "RayCluster" else None
    return "default"


def _too_much(role_: Object) -> Violations:
    for each in _rules(role_):
        resources, groups = _words(each, "resources"), _words(each, "apiGroups")
        if resources & {"secrets", "pods/exec", "*"}:
            yield each.at("resources").wrong("a RayCluster's pods have it")
        elif _words(each, "verbs") & _CREATE_VERBS:
            creating = (names for group, names in _CREATING.items() if groups & {group, "*"})
            if created := sorted(set[str]().union(*creating) & resources):
                yield each.at("verbs").wrong(f"a RayCluster's pods may make or delete {' and '.join(created)}")
