"""Quantities: the same amount, written differently."""

import pytest

from local.plugins.kubernetes.diff import amount, is_quantity_field, same_amount

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("one", "other"), [("1000m", "1"), ("1024Mi", "1Gi"), ("1", 1), ("1e3", "1k"), ("0.5", "500m"), ("1E", "1e18")]
)
def test_the_same_amount(one: object, other: object) -> None:
    assert same_amount(one, other)


@pytest.mark.parametrize(("one", "other"), [("1G", "1Gi"), ("1", "2"), ("x", "x"), (True, 1)])
def test_not_the_same_amount(one: object, other: object) -> None:
    assert not same_amount(one, other)


@pytest.mark.parametrize("text", ["", "1 Gi", "1gi", "Gi", "one", "1e", None, {}])
def test_other_texts_are_not_quantities(text: object) -> None:
    assert amount(text) is None


def test_fields_with_quantities() -> None:
    assert is_quantity_field(("spec", "hard", "requests.cpu"))
    assert is_quantity_field(("emptyDir", "sizeLimit"))
    assert not is_quantity_field(("data", "cpu"))
