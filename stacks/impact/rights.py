"""The rights of subjects before and after an edit: Roles, ClusterRoles and their bindings of a stack. Pure functions.

Rights are shown by subject. No Role or binding is shown by itself: a Role without a subject grants nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.access.manifests import AUTH_DELEGATOR, Body
from components.access.personas import Rule, rule
from kuberay.edits import Verdict

from ..render import Manifests
from .effects import Effect, ObjectImpact, impact

_EVERYWHERE = "the whole cluster"

_WHERE_BOUND = "each namespace in which somebody has it"

_AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"
"""Prefix of the label by which Kubernetes aggregates a ClusterRole's rules into its own ClusterRole."""

_OF_KUBERNETES: Mapping[str, Sequence[Rule]] = {
    AUTH_DELEGATOR: (
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    )
}
"""ClusterRoles that Kubernetes itself creates (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go)."""

Right = tuple[str, str, str]
"""Namespace, object (`secrets training`), and verb."""

Rights = dict[str, set[Right]]
"""By subject."""


def of_rights(before: Manifests, after: Manifests) -> Iterator[ObjectImpact]:
    """For each subject whose rights change: what it gains, and what it loses."""
    had, has = rights(before), rights(after)
    for who in dict.fromkeys([*had, *has]):
        gained, lost = has.get(who, set()) - had.get(who, set()), had.get(who, set()) - has.get(who, set())
        effects = [Effect(Verdict.IN_PLACE, f"gains in {where}: {what}") for where, what in _listed(gained)]
        effects += [Effect(Verdict.IN_PLACE, f"loses in {where}: {what}") for where, what in _listed(lost)]
        yield impact("Rights of", who, effects)


def rights(manifests: Manifests) -> Rights:
    """The rights that the objects of a stack grant, by subject (`group:NAME` and so on); by `clusterRole:NAME` for all
    subjects of that ClusterRole of Kubernetes."""
    found: Rights = defaultdict(set)
    for (kind, name), each in manifests.items():
        if kind in ("RoleBinding", "ClusterRoleBinding"):
            namespace = name.rpartition("/")[0]
            where = f"namespace {namespace}" if namespace else _EVERYWHERE
            given = _given(where, _rules(each.body["roleRef"], namespace, manifests))
            for subject in each.body["subjects"]:
                found[_who(subject)] |= given
        elif kind == "ClusterRole":
            for label in each.body["metadata"].get("labels") or {}:
                if label.startswith(_AGGREGATED):
                    found[f"clusterRole:{label.removeprefix(_AGGREGATED)}"] |= _given(_WHERE_BOUND, each.body["rules"])
    return found


def _rules(ref: Mapping[str, Any], namespace: str, manifests: Manifests) -> Sequence[Rule]:
    kind, name = ref["kind"], ref["name"]
    if kind == "ClusterRole" and name in _OF_KUBERNETES:
        return _OF_KUBERNETES[name]
    found: Sequence[Rule] = manifests[kind, f"{namespace}/{name}" if kind == "Role" else name].body["rules"]
    return found


def _given(where: str, rules: Sequence[Rule]) -> set[Right]:
    return {
        (where, _object(resource, group, name), verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def _who(subject: Body) -> str:
    """In the notation of a stack file."""
    if subject["kind"] == "ServiceAccount":
        return f"serviceAccount:{subject['namespace']}/{subject['name']}"
    return f"{subject['kind'].lower()}:{subject['name']}"


def _object(resource: str, group: str, name: str) -> str:
    kind = f"{resource}.{group}" if group else resource
    return f"{kind} {name}" if name else kind


def _listed(some: set[Right]) -> Iterator[tuple[str, str]]:
    """Namespace, and objects with their verbs: `get, list pods; get secrets training`."""
    verbs: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for where, what, verb in sorted(some):
        verbs[where][what].append(verb)
    for where, things in verbs.items():
        together: dict[str, list[str]] = defaultdict(list)
        for what, may in things.items():
            together[", ".join(may)].append(what)
        yield where, "; ".join(f"{may} {', '.join(what)}" for may, what in together.items())
