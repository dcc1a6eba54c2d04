"""The annotation `pulumi.com/waitFor`."""

import json
from typing import Any

import pytest

from local.plugins.kubernetes.errors import RefusedError
from local.plugins.kubernetes.wait_for import expectations

STATUS: dict[str, Any] = {
    "state": "ready",
    "flag": True,
    "count": 3,
    "conditions": [{"type": "Head", "status": "True"}, {"type": "Ready", "status": "False"}],
    "map": {"a.b": "dotted"},
    "numbers": [{"of": "3", "name": "text"}, {"of": 3, "name": "three"}],
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
        "jsonpath={.status.conditions.*.type}=Head",
        "jsonpath={.status.numbers[?(@.of==3)].name}=three",
        "condition=Head",
        "condition=Ready=False",
        "condition=head=true",
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


def test_a_condition_has_a_generation_of_its_own() -> None:
    late = [{"type": "Ready", "status": "True", "observedGeneration": 1}]
    obj = awaiting("condition=Ready", generation=2) | {"status": {"observedGeneration": 2, "conditions": late}}
    assert not expectations(obj)[0].seen(obj)[0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jsonpath={.status.state}=failed", 'Waiting for {.status.state}=failed (found "ready")'),
        ("jsonpath={.status.none}=x", "{.status.none} selected nothing"),
        ("condition=Ready", "Resource has condition Ready=False (want True)"),
        ("condition=None", "Waiting for condition None=True"),
    ],
)
def test_the_actual_value_is_reported(text: str, shown: str) -> None:
    obj = awaiting(text)
    assert expectations(obj)[0].seen(obj)[1] == shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("status.state=ready", 'expected a "jsonpath=" or "condition=" prefix'),
        ("jsonpath=.status.state", ".status.state should be wrapped in brackets { ... }"),
        ("jsonpath={.status.state}=", "{.status.state}= requires a value"),
        ("jsonpath={.status.state}=a=b", 'format should be {.path}=value or {.path}, got "{.status.state}=a=b"'),
        ("jsonpath='{.status.state}'=a", "'{.status.state}' should omit shell quotes"),
        ("jsonpath={.status..state}", "cannot read '..state'"),
        ("jsonpath={.metadata.labels.my-label}", "cannot read '-label'"),
        ("[]", "at least one condition must be specified"),
        ("[1]", 'expected a "jsonpath=" or "condition=" prefix, got "[1]"'),
        ("condition=", 'expected a "jsonpath=" or "condition=" prefix'),
    ],
)
def test_an_invalid_annotation_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(RefusedError) as refused:
        expectations(awaiting(text))
    assert complaint in str(refused.value)


def test_a_whole_mapping_has_no_value_to_compare() -> None:
    obj = awaiting("jsonpath={.status.map}=x")
    with pytest.raises(RefusedError, match="has a non-primitive value"):
        expectations(obj)[0].seen(obj)
