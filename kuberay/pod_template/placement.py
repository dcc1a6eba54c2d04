"""Where pods may run: affinity, tolerations, spread over domains (validation.go: validateAffinity and others)."""

from core.body import Body
from core.problems import Path
from kuberay import formats
from kuberay.pod_template.findings import (
    conflict,
    dns_label,
    dns_subdomain,
    items,
    label_name,
    label_value,
    labels,
    missing,
    one_of,
    repeated,
    requirement,
    selector,
    within,
    wrong,
)
from kuberay.rules import Found

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SOME, _NONE = ("In", "NotIn"), ("Exists", "DoesNotExist")


def placement(spec: Body, path: Path) -> Found:
    """All rules of a pod about nodes."""
    yield from labels(spec.get("nodeSelector") or {}, (*path, "nodeSelector"))
    affinity, at = spec.get("affinity") or {}, (*path, "affinity")
    yield from _node_affinity(affinity.get("nodeAffinity") or {}, (*at, "nodeAffinity"))
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(affinity.get(kind) or {}, (*at, kind))
    for each, toleration in items(spec, path, "tolerations"):
        yield from toleration_problems(toleration, each)
    yield from _spread(spec, path)


def _node_affinity(affinity: Body, path: Path) -> Found:
    if (required := affinity.get(_REQUIRED)) is not None:
        if not required.get("nodeSelectorTerms"):
            yield missing((*path, _REQUIRED, "nodeSelectorTerms"), "give at least one")
        for at, term in items(required, (*path, _REQUIRED), "nodeSelectorTerms"):
            yield from _term(term, at, True)
    for at, preferred in items(affinity, path, _PREFERRED):
        yield from _weight(preferred, at)
        yield from _term(preferred.get("preference") or {}, (*at, "preference"), False)


def _weight(preferred: Body, path: Path) -> Found:
    if not 1 <= preferred.get("weight", 0) <= 100:
        yield wrong((*path, "weight"), preferred.get("weight", 0), "give a number from 1 to 100")


def _term(term: Body, path: Path, checked: bool) -> Found:
    """ValidateNodeSelectorTerm."""
    for at, expression in items(term, path, "matchExpressions"):
        yield from _expression(expression, at, checked)
    for at, field in items(term, path, "matchFields"):
        values = field.get("values") or []
        if field.get("operator") not in _SOME:
            yield wrong((*at, "operator"), field.get("operator"), "use In or NotIn")
        elif len(values) != 1:
            yield wrong((*at, "values"), values, "give exactly one")
        if field.get("key") != "metadata.name":
            yield wrong((*at, "key"), field.get("key"), "use metadata.name, the only one")
        else:
            for index, value in enumerate(values):
                yield from dns_subdomain(value, (*at, "values", index))


def _expression(expression: Body, path: Path, checked: bool) -> Found:
    """ValidateNodeSelectorRequirement."""
    if expression.get("operator") not in ("Gt", "Lt"):
        yield from requirement(expression, path, _SOME, _NONE, checked)
        return
    values = expression.get("values") or []
    if len(values) != 1:
        yield wrong((*path, "values"), values, "give exactly one, a number")
    yield from label_name(expression.get("key", ""), (*path, "key"))
    for index, value in enumerate(values if checked else ()):
        yield from label_value(value, (*path, "values", index))


def _pod_affinity(affinity: Body, path: Path) -> Found:
    for at, term in items(affinity, path, _REQUIRED):
        yield from _pod_term(term, at)
    for at, preferred in items(affinity, path, _PREFERRED):
        yield from _weight(preferred, at)
        yield from _pod_term(preferred.get("podAffinityTerm") or {}, (*at, "podAffinityTerm"))


def _pod_term(term: Body, path: Path) -> Found:
    """validatePodAffinityTerm."""
    for key in ("labelSelector", "namespaceSelector"):
        yield from selector(term.get(key) or {}, (*path, key))
    for index, namespace in enumerate(term.get("namespaces") or ()):
        yield from dns_label(namespace, (*path, "namespaces", index))
    yield from label_name(term.get("topologyKey", ""), (*path, "topologyKey"))
    yield from _label_keys(term, path)


def _label_keys(term: Body, path: Path) -> Found:
    """ValidateMatchLabelKeysAndMismatchLabelKeys."""
    matched, other = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for kind, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", other)):
        if keys and term.get("labelSelector") is None:
            yield conflict((*path, kind), None, "needs a labelSelector: add it, or remove this")
            continue
        for index, key in enumerate(keys):
            yield from label_name(key, (*path, kind, index))
    for index, key in enumerate(matched):
        if key in other:
            yield repeated((*path, "matchLabelKeys", index), key, "in mismatchLabelKeys as well,")


def toleration_problems(toleration: Body, path: Path) -> Found:
    """ValidateTolerations, for one of them."""
    key, operator, value = toleration.get("key", ""), toleration.get("operator", ""), toleration.get("value", "")
    if key:
        yield from label_name(key, (*path, "key"))
    elif operator != "Exists":
        yield missing((*path, "key"), "add it, or use operator Exists, which tolerates all taints")
    yield from one_of(toleration, path, "operator", ("Equal", "Exists"))
    if operator == "Exists" and value:
        yield conflict((*path, "value"), value, "operator Exists has no value: remove it, or use operator Equal")
    elif operator in ("", "Equal") and not formats.is_label_value(value):
        yield from label_value(value, (*path, "value"))
    yield from one_of(toleration, path, "effect", _EFFECTS)
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        message = "needs effect NoExecute: set it, or remove this"
        yield conflict((*path, "tolerationSeconds"), toleration["tolerationSeconds"], message)


def _spread(spec: Body, path: Path) -> Found:
    """validateTopologySpreadConstraints."""
    seen = set()
    for at, constraint in items(spec, path, "topologySpreadConstraints"):
        yield from within(constraint, at, "maxSkew", 1, 2**31 - 1)
        if not constraint.get("topologyKey"):
            yield missing((*at, "topologyKey"))
        yield from one_of(constraint, at, "whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"), empty=False)
        pair = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"))
        if pair in seen:
            yield repeated((*at, "topologyKey"), pair[0], "with the same whenUnsatisfiable")
        seen.add(pair)
        yield from within(constraint, at, "minDomains", 1, 2**31 - 1)
        if constraint.get("minDomains") is not None and pair[1] != "DoNotSchedule":
            yield conflict((*at, "minDomains"), constraint["minDomains"], "needs whenUnsatisfiable: DoNotSchedule")
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from one_of(constraint, at, key, ("Honor", "Ignore"), empty=False)
        yield from selector(constraint.get("labelSelector") or {}, (*at, "labelSelector"))
        yield from _label_keys(constraint, at)
