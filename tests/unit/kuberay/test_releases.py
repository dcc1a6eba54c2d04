"""Features that an older operator lacks although its CRDs have the fields."""

from typing import Any

import pytest

from kuberay import OperatorContext, validate
from tests.unit.kuberay.manifests import edited, manifest

GRPC = {
    "spec rayClusterConfig headGroupSpec template spec containers 0 ports": [{"name": "serve-grpc", "containerPort": 9}]
}
KEPT = {"spec deletionStrategy deletionRules": [{"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}]}


@pytest.mark.parametrize(
    ("kind", "edits", "rule"),
    [("RayService", GRPC, "serve-port"), ("RayJob", KEPT, "deletion-feature-gate")],
)
def test_what_1_6_takes_1_5_may_refuse(kind: str, edits: dict[str, Any], rule: str) -> None:
    body = edited(manifest(kind), edits)
    assert [problem.rule for problem in validate(body, OperatorContext("1.5.1"))] == [rule]
    assert validate(body, OperatorContext("1.6.2")) == []


@pytest.mark.parametrize("version", ["1.5.1", "1.6.2", "1.7.0"])
@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_what_all_releases_know_passes(kind: str, version: str) -> None:
    assert validate(manifest(kind), OperatorContext(version)) == []


def test_a_misspelled_field_is_found_for_an_older_operator_too() -> None:
    body = edited(manifest("RayCluster"), {"spec colour": "red"})
    assert [problem.rule for problem in validate(body, OperatorContext("1.5.1"))] == ["unknown-field"]


def test_an_operator_is_of_a_release_or_after_it() -> None:
    assert OperatorContext("1.10.0").since("1.9")
    assert OperatorContext("1.6.2").since("1.6")
    assert not OperatorContext("1.5.1").since("1.6")
