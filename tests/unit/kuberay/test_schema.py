"""Defaulting of manifests as in the API server, and values that no manifest should have."""

import datetime
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuberay import OperatorContext, validate
from kuberay.schema import KINDS, RELEASE, stored
from local.crd_schemas import target
from tests.unit.kuberay.manifests import SPECS, edited, manifest, put

LATER = OperatorContext(version="1.7.0")

PLACES = (
    "spec",
    "metadata",
    "metadata labels",
    "spec rayVersion",
    "spec workerGroupSpecs",
    "spec workerGroupSpecs 0 minReplicas",
    "spec headGroupSpec rayStartParams",
    "spec headGroupSpec template spec containers",
    "spec colour",
)


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


STRANGE = {
    "a date": datetime.date(2024, 1, 1),
    "bytes": b"x",
    "a set": {1},
    "no number": math.nan,
    "infinity": math.inf,
    "a number without end": 2**20000,
    "deep": nested(100_000),
    "a key that is a number": {1: 2},
    "a key that is nothing": {None: 1},
    "half a character": {"\ud800": "\ud800"},
}


def test_there_is_a_schema_of_each_kind() -> None:
    assert set(KINDS) == set(SPECS)
    assert target().stem == RELEASE
    assert target().stat().st_size < 200_000


def test_defaults_of_the_crds_are_applied_and_nulls_left_out() -> None:
    body = edited(manifest("RayCluster"), {"spec workerGroupSpecs 0": {"groupName": "a", "maxReplicas": None}})
    made, _ = stored(body, OperatorContext())
    assert made["spec"]["workerGroupSpecs"] == [
        {"groupName": "a", "minReplicas": 0, "maxReplicas": 2**31 - 1, "replicas": 0, "numOfHosts": 1}
    ]


def test_a_manifest_is_not_changed() -> None:
    body = manifest("RayJob")
    before = json.dumps(body)
    validate(body, OperatorContext())
    assert json.dumps(body) == before


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("strange", STRANGE)
def test_a_strange_value_is_a_problem_and_no_crash(strange: str, place: str) -> None:
    body = manifest("RayCluster")
    put(body, place, STRANGE[strange])
    problems = validate(body, OperatorContext())
    assert problems
    assert all("\n" not in problem.message for problem in problems)


@pytest.mark.parametrize("body", [{}, {"kind": []}, {"kind": "RayJob"}, {"kind": "RayJob", "apiVersion": "ray.io/v1"}])
def test_less_than_a_manifest_is_a_problem(body: dict[str, Any]) -> None:
    assert validate(body, OperatorContext())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(kind=st.sampled_from(KINDS), spec=JSON, metadata=JSON)
@settings(derandomize=True, max_examples=300)
def test_anything_is_judged(kind: str, spec: Any, metadata: Any) -> None:
    body = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    assert validate(body, OperatorContext())


def test_a_field_of_a_later_release_passes_for_it() -> None:
    scaled = {"version": "v2", "args": ["$KUBERAY_GEN_AUTOSCALER_START_CMD"]}
    body = edited(manifest("RayCluster"), {"spec autoscalerOptions": scaled, "spec workerGroupSpecs 0 priority": 1})
    assert validate(body, LATER) == []
    found = {(problem.rule, problem.message) for problem in validate(body, OperatorContext())}
    advice = "came with KubeRay 1.7, and operator.version is 1.6.2: remove it, or upgrade the operator to 1.7"
    assert found == {("unknown-field", f"priority {advice}"), ("unknown-field", f"args {advice}")}


def test_a_misspelled_field_is_reported_for_a_later_release_too() -> None:
    body = edited(
        manifest("RayCluster"),
        {
            "spec workerGroupSpecs 0 maxReplica": 1,
            "spec tlsOption": {},
            "spec headGroupSpec ingressOptions": {"hosts": []},
        },
    )
    assert [problem.rule for problem in validate(body, LATER)] == ["unknown-field"] * 3
