"""Each rule, with a manifest that violates it and a similar valid one, defaults of the API server, and its time."""

import datetime
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuberay import RULES, OperatorContext, validate
from kuberay.rules import POD_RULES
from kuberay.schema import KINDS, RELEASE, stored
from local.crd_schemas import target
from tests.unit.kuberay.examples import EXAMPLES, Example
from tests.unit.kuberay.manifests import SPECS, edited, manifest, put


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_a_violation_is_reported_with_its_place_and_a_manifest_that_meets_the_rule_passes(example: Example) -> None:
    found = [(problem.rule, problem.path, problem.message) for problem in validate(example.wrong, example.operator)]
    assert found == [(example.rule, example.at, example.message)]
    assert validate(example.right, example.right_operator) == []
    # One line, with what to change.
    assert ": " in example.message or example.message.endswith("?")
    assert "\n" not in example.message


def test_each_rule_has_an_example() -> None:
    assert {example.rule for example in EXAMPLES} == RULES.keys() - POD_RULES


@pytest.mark.parametrize("kind", SPECS)
def test_the_smallest_manifest_passes(kind: str) -> None:
    assert validate(manifest(kind), OperatorContext(feature_gates={"RayCronJob": True})) == []


def test_all_problems_are_reported_at_once() -> None:
    body = edited(
        manifest("RayCluster"),
        {
            "metadata name": "Ray",
            "spec autoscalerOptions idleTimeoutSeconds": -1,
            "spec workerGroupSpecs 0 minReplicas": 9,
            "spec workerGroupSpecs 0 colour": "red",
        },
    )
    found = {problem.rule for problem in validate(body, OperatorContext())}
    assert found == {"ray-cluster-name", "autoscaler-idle-timeout", "replica-bounds", "unknown-field"}


@pytest.mark.parametrize(
    ("version", "step", "surge", "refused"),
    [
        ("1.7.0", 50, 10, ["stepSizePercent"]),
        ("1.7.0", 10, 10, []),
        ("1.7.0", 50, 101, ["maxSurgePercent"]),
        ("1.6.2", 50, 10, []),
    ],
)
def test_a_step_of_an_incremental_upgrade_is_no_more_than_its_surge_from_1_7_on(
    version: str, step: int, surge: int, refused: list[str]
) -> None:
    """KubeRay 1.7.0, validation.go: ValidateClusterUpgradeOptions."""
    options = {"stepSizePercent": step, "maxSurgePercent": surge, "intervalSeconds": 30, "gatewayClassName": "istio"}
    body = edited(
        manifest("RayService"),
        {
            "spec rayClusterConfig enableInTreeAutoscaling": True,
            "spec upgradeStrategy type": "NewClusterWithIncrementalUpgrade",
            "spec upgradeStrategy clusterUpgradeOptions": options,
        },
    )
    operator = OperatorContext(version, feature_gates={"RayServiceIncrementalUpgrade": True})
    assert [problem.path[-1] for problem in validate(body, operator)] == refused


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


BUDGET = 0.7e-3
"""Seconds for a RayCluster of four worker groups; 0.2 ms on a machine of two cores."""


def test_a_ray_cluster_of_four_worker_groups_is_judged_within_the_budget() -> None:
    pod = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": "ray",
            "nodeSelector": {"pool": "a100"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "ray-worker",
                    "image": "rayproject/ray:2.60.0",
                    "env": [{"name": name, "value": "1"} for name in ("A", "B", "C", "D")],
                    "resources": {"limits": {"cpu": "8", "memory": "64Gi"}, "requests": {"cpu": "8", "memory": "64Gi"}},
                }
            ],
        },
    }
    groups = {
        f"spec workerGroupSpecs {number}": {
            "groupName": f"a100-{number}", "maxReplicas": 4, "rayStartParams": {"num-gpus": "1"}, "template": pod
        }
        for number in range(4)
    }  # fmt: skip
    body, operator = edited(manifest("RayCluster"), groups), OperatorContext()
    assert validate(body, operator) == []
    assert min(_seconds(body, operator) for _ in range(100)) < BUDGET


def _seconds(body: dict[str, object], operator: OperatorContext) -> float:
    start = time.perf_counter()
    validate(body, operator)
    return time.perf_counter() - start
