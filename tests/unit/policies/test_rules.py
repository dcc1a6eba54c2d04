"""Each rule with an object that meets it, one that violates it, and one that a preview cannot know."""

from typing import Any

import pytest

from policies.configuration import Level
from policies.rule import Rule, Severity
from policies.rules import FAMILIES, RULES
from policies.values import Object
from testbed.policies.bodies import (
    budget,
    cron_job,
    default_deny,
    deployment,
    for_ray,
    ingress,
    job,
    namespace,
    opened,
    pod,
    ray_cluster,
    ray_job,
    redis,
    role,
    service,
    volcano_job,
)
from testbed.policies.case import Case, case
from tests.unit.policies import cases_of_kubernetes, cases_of_pods, cases_of_ray

CASES = [*cases_of_ray.CASES, *cases_of_pods.CASES, *cases_of_kubernetes.CASES]
LABELS = "spec template metadata labels"
SUBMITTER = "spec submitterPodTemplate"
IDS = [f"{each.rule}-{each.at.replace(' ', '.')}" for each in CASES]


@pytest.mark.parametrize("each", CASES, ids=IDS)
def test_an_object_that_meets_a_rule_passes_and_a_violation_or_an_unknown_value_never_does(each: Case) -> None:
    assert each.known_findings(each.good) == []
    found = each.known_findings(each.bad)
    assert found
    assert all(found)
    assert False in each.not_known()


def test_every_rule_has_a_case() -> None:
    cases = {each.rule for each in CASES}
    assert {rule.id for rule in RULES} == cases, "add a case to a file cases_of_*.py beside this one"


def test_ids_are_unique_and_families_are_modules() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES) >= 60
    assert {rule.family for rule in RULES} == set(FAMILIES)


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_every_rule_has_its_texts(rule: Rule) -> None:
    assert all((rule.what, rule.why, rule.source, rule.fix))
    assert rule.what.endswith(".")
    assert rule.fix.endswith(".")


def test_valid_objects_violate_no_mandatory_rule() -> None:
    """Meeting one rule does not violate another."""
    bodies = [
        pod(),
        namespace(),
        ray_cluster(),
        ray_job(),
        default_deny(),
        opened(53, 443),
        for_ray(),
        budget(),
        ingress(),
        role(),
        cron_job(),
        volcano_job(),
        redis(),
    ]
    named = [{**each, "metadata": {**each["metadata"], "name": f"it-{number}"}} for number, each in enumerate(bodies)]
    named[3]["spec"]["rayClusterSpec"]["gcsFaultToleranceOptions"]["externalStorageNamespace"] = "team-a.job"
    assert [
        f"{each.place}: {each.rule.id}"
        for each in case("", "metadata name", "it", "", *named).report("it-0").findings
        if each.level is Level.MANDATORY
    ] == []


def test_rules_of_low_severity_are_advice() -> None:
    low = {rule.id for rule in RULES if rule.severity is Severity.LOW}
    report = case("", "spec", {}, {}, ray_cluster(), deployment(), job(), service()).report({})
    assert {each.rule.id for each in report.findings if each.level is Level.ADVISORY} <= low


def test_a_shape_that_is_no_object_s_is_left_to_the_api_server() -> None:
    """Text instead of a mapping, a list of lists: rules report missing fields, and none raises."""
    shapes: tuple[Any, ...] = ("text", 7, [], [[]], {"containers": "none"}, None)
    for value in shapes:
        assert case("", "spec template", value, value, deployment()).report(value) is not None
        assert case("", LABELS, value, value, redis(), budget(), service()).report(value) is not None
        for place in ("", " spec", " spec containers 0", " spec containers 0 env", " metadata annotations"):
            assert case("", f"{SUBMITTER}{place}", value, value, ray_job(), namespace()).report(value) is not None
    assert str(Object({"apiVersion": "v1", "kind": "Pod", "metadata": "x"})) == "Pod"
