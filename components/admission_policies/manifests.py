"""Renders the settings into a policy and its binding for each rule. Pure functions.

They need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

from collections.abc import Sequence
from datetime import date
from typing import Any

from policies.cel import ALWAYS, CelCheck, before, resource_rules, text, variables
from policies.rule import Rule
from policies.rules import RULES

from ..tenant.settings import OWN
from .settings import AdmissionException, AdmissionPoliciesSettings

Body = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"

PREFIX = "ray-platform-"
"""Prefix of the names of policies and bindings, before the rule's id."""

EXCEPTIONS = f"{OWN}/exceptions"
"""Annotation of a binding: where, why and until when its rule is not enforced."""

_NAME = "kubernetes.io/metadata.name"
"""Label with the name of each namespace, which nobody can change."""

_OF_KUBERNETES = ("kube-system", "kube-public", "kube-node-lease")


def admission_policies(
    settings: AdmissionPoliciesSettings,
    namespaces: Sequence[str] | None,
    system: Sequence[str],
    today: date,
) -> list[Body]:
    """The policies, each with its binding.

    `namespaces`: those of the tenants; None if they are selected by their label.
    `system`: those of programs that the stack installs.
    """
    made: list[Body] = []
    for rule in RULES:
        action = settings.rules.get(rule.id, settings.action)
        if rule.cel and action != "Disabled" and rule.cel.holds(settings.options_of(rule)) != ALWAYS:
            held = [each for each in settings.exceptions if each.rule == rule.id and today <= each.expires]
            selected = _selected(settings, namespaces, system, held)
            made += [_policy(rule, rule.cel, settings), _binding(rule, action, selected, held)]
    return made


def _policy(rule: Rule, cel: CelCheck, settings: AdmissionPoliciesSettings) -> Body:
    options = settings.options_of(rule)
    holds = cel.holds(options)
    # An existing violation may be changed, scaled and deleted, so that its operator and finalizers can work.
    expression = f"({holds}) || oldObject != null && !({before(holds)})"
    message = f"{rule.id}: {rule.what} {rule.fix}"
    validation = {"expression": expression, "message": message, "reason": "Forbidden"}
    if (where := cel.where(options)) is not None:
        validation["messageExpression"] = f"{text(f'{message} Broken by ')} + {where}"
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"{PREFIX}{rule.id}"},
        "spec": {
            "failurePolicy": settings.failure_policy,
            "matchConstraints": {"resourceRules": resource_rules(cel.kinds)},
            "variables": variables([expression, where or ""]),
            "validations": [validation],
        },
    }


def _binding(rule: Rule, action: str, selected: Body, held: Sequence[AdmissionException]) -> Body:
    name = f"{PREFIX}{rule.id}"
    lines = [f"{each.namespace} until {each.expires}: {each.reason} ({each.owner})" for each in held]
    annotations = {"annotations": {EXCEPTIONS: "\n".join(lines)}} if lines else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, **annotations},
        "spec": {
            "policyName": name,
            "validationActions": [action],
            "matchResources": {"namespaceSelector": selected},
        },
    }


def _selected(
    settings: AdmissionPoliciesSettings,
    namespaces: Sequence[str] | None,
    system: Sequence[str],
    held: Sequence[AdmissionException],
) -> Body:
    """Which namespaces a rule is enforced in."""
    if settings.namespaces == "all":
        spared = [*_OF_KUBERNETES, *system, *settings.except_namespaces]
        where = _names("NotIn", spared)
    elif namespaces is None:
        where = {"key": f"{OWN}/tenant", "operator": "Exists"}
    else:
        where = _names("In", namespaces)
    excepted = [_names("NotIn", [each.namespace for each in held])] if held else []
    return {"matchExpressions": [where, *excepted]}


def _names(operator: str, names: Sequence[str]) -> Body:
    return {"key": _NAME, "operator": operator, "values": sorted(set(names))}
