"""The annotation `pulumi.com/waitFor`."""

import json
from typing import Any

import pytest

from local.plugins.kubernetes.errors import RefusedError
from local.plugins.kubernetes.wait_for import expectations

pytestmark = pytest.mark.unit

STATUS: dict[str, Any] = {
    "state": "ready",
    "flag": True,
    "count": 3,
    "conditions": [{"type": "Head", "status": "True"}, {"type": "Ready", "status": "False"}],
    "map": {"a.b": "dotted"},
}


def awaiting(text: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {"pulumi.com/waitFor": text}, **more}, "status": STATUS}


def seen(text: str) -> list[bool]:
    obj = awaiting(text)
    return [expectation.seen(obj)[0] for expectation in expectations(obj)]


@pytest.mark.parametrize(
    "text",
    [
        "jsonpath={.status.state}=ready",
        "jsonpath={ .status.state }",
        "jsonpath={$.status.state}=ready",
        "jsonpath={.status.flag}=true",
        "jsonpath={.status.count}=3",
        'jsonpath={.status.conditions[?(@.type=="Head")].status}=True',
        "jsonpath={.status.conditions[?(@.type == 'Ready')].status}=False",
        "jsonpath={.status.conditions[0].type}=Head",
        "jsonpath={.status.conditions[-1].type}=Ready",
        "jsonpath={.status.conditions[*].type}=Head",
        "jsonpath={.status.map['a.b']}=dotted",
        r"jsonpath={.status.map.a\.b}=dotted",
        "condition=Head",
        "condition=Ready=False",
    ],
)
def test_a_met_condition_is_seen(text: str) -> None:
    assert seen(text) == [True]


@pytest.mark.parametrize(
    "text",
    ["jsonpath={.status.state}=failed", "jsonpath={.status.none}", "condition=Ready", "condition=None=False"],
)
def test_an_unmet_condition_is_not_seen(text: str) -> None:
    assert seen(text) == [False]


def test_each_of_several_conditions_is_required() -> None:
    assert seen(json.dumps(["condition=Head", "condition=Ready"])) == [True, False]


def test_the_status_from_before_a_change_does_not_count() -> None:
    obj = awaiting("jsonpath={.status.state}=ready", generation=2) | {"status": STATUS | {"observedGeneration": 1}}
    done, text = expectations(obj)[0].seen(obj)
    assert not done
    assert "has not seen the change yet" in text


def test_the_actual_value_is_reported() -> None:
    obj = awaiting("jsonpath={.status.state}=failed")
    assert expectations(obj)[0].seen(obj)[1] == 'jsonpath={.status.state}=failed (found "ready")'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("status.state=ready", 'expected a "jsonpath=" or "condition=" prefix'),
        ("jsonpath=.status.state", "write jsonpath={.path} or jsonpath={.path}=value"),
        ("jsonpath={.status.state}=", "has no value"),
        ("jsonpath={.status..state}", "cannot read '..state'"),
        ("[]", "expected one condition or a JSON array"),
        ("[1]", "expected one condition or a JSON array"),
        ("condition=", 'expected a "jsonpath=" or "condition=" prefix'),
    ],
)
def test_an_invalid_annotation_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(RefusedError) as refused:
        expectations(awaiting(text))
    assert complaint in str(refused.value)


def test_a_whole_mapping_has_no_value_to_compare() -> None:
    obj = awaiting("jsonpath={.status.map}=x")
    with pytest.raises(RefusedError, match="selects a whole mapping"):
        expectations(obj)[0].seen(obj)
