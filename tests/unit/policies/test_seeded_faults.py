"""Faults at each place of good manifests, inside other objects and among others: each is found at its line.

Some 2,000 combinations are possible; `python -m benchmarks.checkers` tries the places alone, beside other checkers.
"""

import functools
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml

from benchmarks.checkers.faults import ELSEWHERE, IN_PODS, OF_RAY, RAYS, Case, of_objects, of_pods
from core.body import Body
from core.problems import Path
from core.yaml_reader.document import documents
from policies.configuration import Configuration, Level
from policies.judge import Finding, Judge
from policies.read import in_text
from policies.values import Object
from policies.walk import Stack
from testbed.policies.wrappers import WRAPPERS, steps

pytestmark = pytest.mark.thorough

ONLY_IN_RAY = "no limit of memory"
"""Ray plans with the limit of memory; for other pods it is a matter of taste."""

SEEDED = [
    each
    for each in (*of_pods(), *of_objects(OF_RAY), *of_objects(ELSEWHERE))
    if each.fault != ONLY_IN_RAY or each.place in RAYS
]

SEEN_ELSEWHERE = {
    "two clusters in one place of Redis",
    "no NetworkPolicy where Ray runs",
    "egress without DNS",
    "a gang beyond the CPUs of its queue",
    "a gang that its queue never admits",
    "a NetworkPolicy that allows all",
    "no PodDisruptionBudget",
    "a Service that selects no pod",
    "an Ingress without TLS",
}
"""Faults between two values, of which the other one is reported."""

SEED, TRIED = 20261124, 60
"""Random combinations of a fault, what its object is in, and what is around it."""


class Dumper(yaml.CSafeDumper):
    """Writes texts of several lines as blocks, as people do."""


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _text)


def text_of(bodies: Iterable[Body]) -> str:
    return yaml.dump_all(bodies, Dumper=Dumper, sort_keys=False, width=10_000)


@functools.cache
def findings(text: str) -> list[Finding]:
    objects = [each for each in in_text(text, "a.yaml") if isinstance(each, Object)]
    return list(Judge(Configuration(), "prod").report(objects).findings)


def new(good: str, bad: str) -> list[Finding]:
    """The findings that only the second text has."""
    left = Counter((each.rule.id, each.message) for each in findings(good))
    found = []
    for each in findings(bad):
        left[each.rule.id, each.message] -= 1
        if left[each.rule.id, each.message] < 0:
            found.append(each)
    return found


def lines_below(value: Any, path: Path) -> Iterator[Path]:
    yield path
    for step, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from lines_below(each, (*path, step))


def lines_of(changed: Iterable[str], text: str) -> set[int]:
    """The lines of the changed values in the first document."""
    document = next(documents(text))
    found = set()
    for at in changed:
        value: Any = document.value
        for step in steps(at):
            value = dict(enumerate(value) if isinstance(value, list) else value or {}).get(step)
        found |= {document.span(path).line for path in lines_below(value, steps(at))}
        if isinstance(value, str):
            first = document.span(steps(at)).line
            found |= {*range(first, first + value.count("\n") + 1)}
    return found


def test_good_manifests_have_no_findings() -> None:
    for case in SEEDED:
        judged = [each for each in findings(text_of(case.good)) if each.rule.subject is not Stack]
        assert [(each.rule.id, each.place) for each in judged if each.level is Level.MANDATORY] == [], case


def test_each_class_has_a_fault() -> None:
    assert {each.fault for each in SEEDED} == {*IN_PODS, *OF_RAY, *ELSEWHERE}


@pytest.mark.parametrize("case", SEEDED, ids=lambda each: f"{each.fault}-{each.place}")
def test_a_fault_is_found_where_it_is(case: Case) -> None:
    text = text_of(case.bad)
    found = new(text_of(case.good), text)
    places = {each.owner.line(each.path) for each in found}
    assert found
    if case.fault not in SEEN_ELSEWHERE:
        assert places & lines_of(case.changed, text), [each.place for each in found]


def around(case: Case) -> list[Body]:
    """The objects of a good case in another namespace."""
    return [dict(json.loads(json.dumps(each).replace("team-a", "team-b"))) for each in case.good]


def source(finding: Finding, text: str) -> str:
    """The line of a finding, without its indentation."""
    return text.splitlines()[(finding.owner.line(finding.path) or 0) - 1].lstrip(" -")


def test_faults_are_found_inside_other_objects_and_among_others() -> None:
    """The same findings, at the same lines, as for the objects by themselves."""
    chosen = random.Random(SEED)  # noqa: S311 (no secret)
    for _ in range(TRIED):
        case, other = chosen.choice(SEEDED), chosen.choice(SEEDED)
        name, wrap = chosen.choice(list(WRAPPERS.items()))
        good, bad = text_of(case.good), text_of(case.bad)
        before = chosen.choice([around(other), []])
        wrapped_good, wrapped_bad = (text_of([*before, *map(wrap, objects)]) for objects in (case.good, case.bad))
        alone = [(each.rule.id, each.message, source(each, bad)) for each in new(good, bad)]
        within = [(each.rule.id, each.message, source(each, wrapped_bad)) for each in new(wrapped_good, wrapped_bad)]
        assert sorted(within) == sorted(alone), f"{case.fault} in {case.place or 'its object'}, in {name}"
