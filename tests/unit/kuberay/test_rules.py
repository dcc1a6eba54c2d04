"""Each rule: a manifest that violates it gets one message, a similar valid one gets none."""

import pytest

from kuberay import RULES, OperatorContext, validate
from kuberay.rules import POD_RULES
from tests.unit.kuberay.examples import EXAMPLES, Example
from tests.unit.kuberay.manifests import SPECS, edited, manifest

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)


@each_example
def test_a_violation_is_reported_with_its_place(example: Example) -> None:
    found = [(problem.rule, problem.path, problem.message) for problem in validate(example.wrong, example.operator)]
    assert found == [(example.rule, example.at, example.message)]


@each_example
def test_a_manifest_that_meets_the_rule_passes(example: Example) -> None:
    assert validate(example.right, example.right_operator) == []


@each_example
def test_a_message_is_one_line_with_what_to_change(example: Example) -> None:
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
