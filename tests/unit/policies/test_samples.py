"""The samples of KubeRay and ado: the rules that each violates, as reviewed and explained."""

import re
from pathlib import Path

import pytest

from policies.rule import Severity
from policies.rules import BY_ID
from testbed.policies.verdicts import files, pinned, verdict

pytestmark = pytest.mark.thorough

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "policy-verdicts.md"
FILES = files()


@pytest.mark.parametrize("name", FILES)
def test_a_sample_breaks_what_it_was_seen_to_break(name: str) -> None:
    assert verdict(FILES[name]) == pinned()[name]


def test_all_samples_have_a_verdict() -> None:
    assert set(pinned()) == set(FILES)


def test_every_verdict_has_its_argument() -> None:
    """The page explains each rule with findings, and no other, and marks those that are advisory."""
    argued = dict(re.findall(r"(?m)^\| `([\w-]+)`( \(advice\))? \|", PAGE.read_text()))
    found = {rule.removesuffix("?") for each in pinned().values() for rule in each}
    assert set(argued) == found
    assert {rule for rule, advice in argued.items() if advice} == {
        rule for rule in found if BY_ID[rule].severity is Severity.LOW
    }
