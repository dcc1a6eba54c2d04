"""Thousands of generated manifests: the operator and our rules judge each equally."""

from typing import Any

import pytest
from hypothesis import given

from kuberay import OperatorContext
from tests.conftest import Compared
from tests.differential import strategies
from tests.differential.judgement import Tally, agree
from tests.differential.operator import Operator
from tests.suites import cases as drawn
from tests.suites import in_full

pytestmark = [pytest.mark.engine, pytest.mark.differential, pytest.mark.suite("manifests")]

Case = tuple[dict[str, Any], OperatorContext]


@pytest.mark.parametrize(
    ("name", "cases", "count"),
    [
        ("on one theme", strategies.on_one_theme(), 3000),
        ("with a field or two", strategies.with_fields(0, 2), 2000),
        ("with many fields", strategies.with_fields(3, 9), 2000),
        ("wild", strategies.wild(), 2000),
    ],
)
def test_generated_manifests_are_judged_equally(
    operator: Operator, compared: Compared, name: str, cases: Any, count: int
) -> None:
    tally = Tally()

    @drawn("manifests", count)
    @given(cases)
    def judge(case: Case) -> None:
        agree(operator, *case, tally)

    judge()
    if in_full("manifests"):
        # A small share may lack one of them by chance.
        assert tally.cases["taken"] + tally.cases["stricter"] >= count / 30
        assert tally.cases["refused"] >= count / 10
    compared("KubeRay's functions", f"manifests {name}, {len(tally.rules)} rules violated", tally.cases)
