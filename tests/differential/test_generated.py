"""Generated manifests: the operator and our rules judge each equally."""

from typing import Any

import pytest
from hypothesis import given

from kuberay import OperatorContext
from tests.conftest import Compared
from tests.differential import strategies
from tests.differential.judgement import Tally, agree
from tests.differential.operator import Operator

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.differential]

Case = tuple[dict[str, Any], OperatorContext]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("on one theme", strategies.on_one_theme()),
        ("with a field or two", strategies.with_fields(0, 2)),
        ("with many fields", strategies.with_fields(3, 9)),
        ("wild", strategies.wild()),
    ],
)
def test_generated_manifests_are_judged_equally(operator: Operator, compared: Compared, name: str, cases: Any) -> None:
    tally = Tally()

    @given(cases)
    def judge(case: Case) -> None:
        agree(operator, *case, tally)

    judge()
    assert tally.cases["taken"] + tally.cases["stricter"]
    assert tally.cases["refused"]
    compared("KubeRay's functions", f"manifests {name}, {len(tally.rules)} rules violated", tally.cases)
