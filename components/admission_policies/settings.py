"""Settings of the rules that the API server enforces, rendered into a policy and its binding for each rule.

They need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from components.tenant.settings import OWN, named, of_tenants
from core.body import Body
from core.problems import Path, Problem
from core.types import CheckedSettings, DnsLabel, NonEmptyText, Settings
from policies.cel import ALWAYS, CelCheck, before, resource_rules, text, variables
from policies.rule import Rule
from policies.rules import ENFORCEABLE, RULES

Action = Literal["Deny", "Warn", "Audit"]
"""The action for a violation: the object is refused; its author is warned; the audit log records it
(`validationActions`)."""

RuleId = Annotated[str, WithJsonSchema({"type": "string", "enum": sorted(ENFORCEABLE)})]


def _is_day(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        raise ValueError(f'{value!r} is not a day: write it as "2027-03-31"')
    return value


Day = Annotated[date, BeforeValidator(_is_day, json_schema_input_type=str)]


class AdmissionException(Settings):
    """A namespace in which a rule is temporarily not enforced."""

    rule: RuleId
    """The rule's id."""

    namespace: DnsLabel
    """The namespace."""

    reason: NonEmptyText
    """The reason for the exception."""

    owner: NonEmptyText
    """The person or team that is responsible for it."""

    expires: Day
    """The last day, in quotes: `"2027-03-31"`. The first `pulumi up` after it enforces the rule there."""


class AdmissionPoliciesSettings(CheckedSettings):
    """Rules of `policies/` as ValidatingAdmissionPolicies: the API server applies them to all new objects, also to
    those that operators create. Existing violations can still be changed.
    """

    action: Action = "Deny"
    """The action for a violation. `Deny`: the object is refused. `Warn`: its author is warned. `Audit`: the API
    server's audit log records it."""

    rules: dict[RuleId, Action | Literal["Disabled"]] = Field(default_factory=dict)
    """The action for single rules, by their ids. `Disabled`: the rule is not enforced."""

    options: dict[RuleId, dict[str, Any]] = Field(default_factory=dict)
    """Options of rules, as in `policies/configuration.yaml`: `{img-registry: {allowed: [docker.io/rayproject]}}`."""

    namespaces: Literal["tenants", "all"] = "tenants"
    """`tenants`: the tenants' namespaces. `all`: all namespaces except Kubernetes' own and those of programs that the
    stack installs."""

    except_namespaces: tuple[DnsLabel, ...] = ()
    """With `namespaces: all`: more namespaces without the rules."""

    exceptions: tuple[AdmissionException, ...] = ()
    """Namespaces in which single rules are temporarily not enforced."""

    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    """The action for an object that the API server cannot evaluate, for example because it is too large. `Fail`: that
    for a violation. `Ignore`: the object is admitted."""

    def options_of(self, rule: Rule) -> Settings:
        """The options of a rule, with their defaults. They were validated with these settings."""
        return rule.options.model_construct(**self.options.get(rule.id, {}))

    def problems(self) -> list[Problem]:
        return [*self._unknown_rules(), *self._wrong_options(), *self._not_everywhere()]

    def _unknown_rules(self) -> Iterator[Problem]:
        configured: list[tuple[Path, str]] = [
            *((("rules", rule), rule) for rule in self.rules),
            *((("options", rule), rule) for rule in self.options),
            *((("exceptions", index, "rule"), each.rule) for index, each in enumerate(self.exceptions)),
        ]
        for path, rule in configured:
            if rule not in ENFORCEABLE:
                near = difflib.get_close_matches(rule, ENFORCEABLE, n=1, cutoff=0.8)
                hint = f"did you mean {near[0]}?" if near else "docs/policies.md lists those that it can"
                message = f"the API server enforces no rule {rule!r}: {hint}"
                yield Problem(path, rule, message, "admission-rule")

    def _wrong_options(self) -> Iterator[Problem]:
        for rule, options in self.options.items():
            if rule in ENFORCEABLE:
                known = ENFORCEABLE[rule].options().model_dump(mode="json", by_alias=True)
                yield from _wrong(("options", rule), options, known)

    def _not_everywhere(self) -> Iterator[Problem]:
        if self.except_namespaces and self.namespaces != "all":
            message = (
                "has an effect only with namespaces: all. For a tenant's namespace set exceptions, each with a reason"
            )
            yield Problem(("exceptNamespaces",), list(self.except_namespaces), message, "admission-namespaces")


def _wrong(path: Path, options: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in options.items():
        if name not in known:
            message = f"the rule has no option {name!r}; its options: {', '.join(known) or 'none'}"
            yield Problem((*path, name), value, message, "admission-option")
        elif (expected := _expected(value, known[name])) is not None:
            yield Problem((*path, name), value, f"{value!r} is not {expected}", "admission-option")


def _expected(value: Any, default: Any) -> str | None:
    """The expected kind of a value, if it does not match the default of its option; None if it matches."""
    if isinstance(default, list):
        fits = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
        return None if fits else "a list of texts"
    if isinstance(default, int):
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return None if fits else "a whole number, at least 0"
    fits = isinstance(value, str) and bool(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", value))
    return None if fits else "a version of three numbers such as 2.60.0"


API_VERSION = "admissionregistration.k8s.io/v1"

PREFIX = "ray-platform-"
"""Prefix of the names of policies and bindings, before the rule's id."""

EXCEPTIONS = f"{OWN}/exceptions"
"""Annotation of a binding: where, why and until when its rule is not enforced."""

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
        excluded = [*_OF_KUBERNETES, *system, *settings.except_namespaces]
        where = named("NotIn", excluded)
    else:
        where = of_tenants(namespaces)
    excepted = [named("NotIn", [each.namespace for each in held])] if held else []
    return {"matchExpressions": [where, *excepted]}
