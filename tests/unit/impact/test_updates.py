"""Which pods a field configures, by the rules: those whose stamp changes with it, which identifies old pods."""

import copy
from typing import Any

import pytest

from components.rollout.templates import parts, stamped
from kuberay.edit_rules import rule_for
from stacks.commands.impact.sources import ray_clusters
from tests.unit.impact.stacks import ray
from tests.unit.planning.stacks import stack, tenant

BODY: dict[str, Any] = dict(ray_clusters(stack(tenant("a", ray())))["a/training"])


def marks(spec: dict[str, Any]) -> dict[str, str]:
    """Of head and workers."""
    stamps = parts(stamped({**BODY, "spec": spec}, None)["spec"])
    return {"head": stamps["head"]["stamp"], "workers": stamps["groups"]["a100-8gpu"]["stamp"]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("enableInTreeAutoscaling", False),
        ("autoscalerOptions.idleTimeoutSeconds", 7),
        ("autoscalerOptions.image", "example.com/autoscaler:1"),
        ("authOptions.mode", "disabled"),
        ("gcsFaultToleranceOptions.redisAddress", "redis:6379"),
        ("headServiceAnnotations.a", "b"),
        ("headGroupSpec.serviceType", "NodePort"),
        ("headGroupSpec.rayStartParams.a", "b"),
        ("headGroupSpec.resources.a", "1"),
        ("headGroupSpec.template.metadata.labels.a", "b"),
        ("workerGroupSpecs.0.replicas", 1),
        ("workerGroupSpecs.0.maxReplicas", 1),
        ("workerGroupSpecs.0.idleTimeoutSeconds", 7),
        ("workerGroupSpecs.0.rayStartParams.a", "b"),
        ("workerGroupSpecs.0.template.spec.nodeSelector.a", "b"),
    ],
)
def test_a_rule_names_the_pods_that_are_old_afterwards(path: str, value: Any) -> None:
    edited = copy.deepcopy(BODY["spec"])
    *above, last = path.split(".")
    at: Any = edited
    for step in above:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
    at[last] = value
    before, after = marks(BODY["spec"]), marks(edited)
    old = {pods for pods in before if before[pods] != after[pods]}
    rule = rule_for(tuple(path.split(".")), scales=True)
    assert old == {None: set(), "all": {"head", "workers"}}.get(rule.pods, {rule.pods})
