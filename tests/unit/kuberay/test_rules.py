"""Each rule: a manifest that violates it gets one message, a similar valid one gets none."""

import pytest

from kuberay import RULES, OperatorContext, validate
from kuberay.rules import POD_RULES
from tests.unit.kuberay.examples import EXAMPLES, Example
from tests.unit.kuberay.manifests import SPECS, edited, manifest

pytestmark = pytest.mark.unit

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
