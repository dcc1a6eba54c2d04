"""The examples of each rule and KubeRay's own samples: the operator and our rules judge them equally."""

from pathlib import Path

import pytest
import yaml

from kuberay import RULES, OperatorContext
from kuberay.rules import POD_RULES
from local.crd_schemas import generate, target
from local.tools import KUBERAY, KUBERAY_VALIDATION
from tests.conftest import Compared
from tests.differential.go_messages import MESSAGES, STRICTER
from tests.differential.judgement import Tally, agree
from tests.differential.operator import Operator
from tests.unit.kuberay.examples import EXAMPLES, Example
from tests.unit.kuberay.manifests import SPECS

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.differential]

SAMPLES = KUBERAY.share("config") / "samples"


def test_the_program_and_the_operator_have_one_version() -> None:
    assert KUBERAY_VALIDATION.version == KUBERAY.version


def test_each_rule_is_one_of_the_operator_or_has_a_reason() -> None:
    assert RULES.keys() - POD_RULES == MESSAGES.keys() | STRICTER.keys()
    assert not MESSAGES.keys() & STRICTER.keys()


@pytest.mark.usefixtures("operator")
def test_the_schema_is_that_of_the_operators_crds() -> None:
    """`python -m local.crd_schemas` writes it again."""
    assert target().read_text() == generate(KUBERAY.share("config") / "crd" / "bases")


BUILT = [example for example in EXAMPLES if example.rule in STRICTER or not example.operator.since("1.7")]
"""No registry has the module of KubeRay 1.7, so the operator here does not judge what only 1.7 refuses."""


@pytest.mark.parametrize("example", BUILT, ids=lambda example: example.rule)
def test_an_example_is_judged_equally(operator: Operator, example: Example) -> None:
    tally = Tally()
    agree(operator, example.wrong, example.operator, tally)
    agree(operator, example.right, example.right_operator, tally)
    assert tally.cases["taken"] == 1
    assert tally.cases["stricter"] == (example.rule in STRICTER)


def test_each_sample_of_kuberay_is_judged_equally(operator: Operator, compared: Compared) -> None:
    tally = Tally()
    for file in sorted(SAMPLES.rglob("*.yaml")):
        for body in yaml.load_all(Path(file).read_text(), yaml.CSafeLoader):
            if isinstance(body, dict) and body.get("kind") in SPECS:
                agree(operator, body, OperatorContext(), tally)
    assert tally.cases.total() >= 70
    compared("KubeRay's functions", f"samples of KubeRay {KUBERAY.version}", tally.cases)
