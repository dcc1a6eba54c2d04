"""Thousands of generated manifests: the operator judges each as we do."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from components.kuberay import OperatorContext
from tests.differential import strategies
from tests.differential.judgement import Tally, agree
from tests.differential.operator import Operator

pytestmark = pytest.mark.engine

Case = tuple[dict[str, Any], OperatorContext]

seeded = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(
    ("name", "cases", "count"),
    [
        ("on one theme", strategies.on_one_theme(), 3000),
        ("with a field or two", strategies.with_fields(0, 2), 2000),
        ("with many fields", strategies.with_fields(3, 9), 2000),
        ("wild", strategies.wild(), 2000),
    ],
)
def test_generated_manifests_are_judged_alike(
    operator: Operator, capsys: pytest.CaptureFixture[str], name: str, cases: Any, count: int
) -> None:
    tally = Tally()

    @settings(seeded, max_examples=count)
    @given(cases)
    def judge(case: Case) -> None:
        agree(operator, *case, tally)

    judge()
    assert tally.cases["taken"] + tally.cases["stricter"] >= count / 30
    assert tally.cases["refused"] >= count / 10
    with capsys.disabled():
        print(f"\nmanifests {name}: {tally}")
