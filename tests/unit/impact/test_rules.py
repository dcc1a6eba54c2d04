"""The rules for fields of a RayCluster: one for each of KubeRay's fields, and which pods a field configures by them."""

import copy
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from components.rollout.templates import parts, stamped
from kuberay.edit_rules import RULES, rule_for
from kuberay.edits import Steps, Verdict
from stacks.commands.impact.sources import ray_clusters
from tests.unit.impact.stacks import ray
from tests.unit.planning.stacks import stack, tenant

REST = {release: rules[-1] for release, rules in RULES.items()}
"""The fallback rule."""


def fields(release: str) -> Iterator[Steps]:
    """Those of a RayCluster's spec down to the pod templates, by the CRD of a release."""
    text = resources.files("kuberay").joinpath("schemas", f"{release}.json").read_text(encoding="utf-8")
    known = json.loads(text)["$defs"]

    def below(schema: dict[str, Any], at: Steps) -> Iterator[Steps]:
        schema = known[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if schema.get("type") == "array" and at[-1:] == ("workerGroupSpecs",):
            yield from below(schema["items"], (*at, "gpu"))
        elif at[-1:] == ("template",) or "properties" not in schema:
            yield at
        else:
            for key, part in schema["properties"].items():
                yield from below(part, (*at, key))

    yield from below(known["RayCluster"]["properties"]["spec"], ())


@pytest.mark.parametrize("release", RULES)
def test_there_is_a_rule_for_every_field(release: str) -> None:
    every = list(fields(release))
    assert ("workerGroupSpecs", "gpu", "template") in every
    assert len(every) > 30
    without = [".".join(path) for path in every for scales in (True, False) if rule_for(path, scales) is REST[release]]
    assert without == []


@pytest.mark.parametrize("release", RULES)
def test_every_rule_has_a_reason_and_every_harmful_rule_a_safer_way(release: str) -> None:
    for rule in RULES[release]:
        assert rule.reason
        assert rule.source
        assert rule.safer or rule.verdict in (Verdict.NOTHING, Verdict.IN_PLACE), rule.path


@pytest.mark.parametrize(
    ("path", "scales", "verdict"),
    [
        ("rayVersion", True, Verdict.STRANDS),
        ("workerGroupSpecs.gpu.replicas", True, Verdict.NOTHING),
        ("workerGroupSpecs.gpu.replicas", False, Verdict.IN_PLACE),
        ("workerGroupSpecs.gpu.template.spec.containers.ray-worker.image", True, Verdict.NEW_PODS),
        ("headGroupSpec.template.spec.containers.ray-head.image", True, Verdict.IGNORED),
        ("managedBy", True, Verdict.REFUSED),
        ("ofANewerKubeRay", True, Verdict.IGNORED),
    ],
)
def test_the_first_rule_that_matches_holds(path: str, scales: bool, verdict: Verdict) -> None:
    assert rule_for(tuple(path.split(".")), scales).verdict is verdict


def test_a_release_that_is_not_known_yet_has_the_rules_of_the_newest() -> None:
    assert rule_for(("suspend",), True, "1.7") is rule_for(("suspend",), True, "1.6")


def test_the_page_of_the_docs_has_every_rule() -> None:
    page = (Path(__file__).parents[3] / "docs" / "impact.md").read_text(encoding="utf-8")
    rules = (rule for release in RULES.values() for rule in release)
    assert [rule.path for rule in rules if f"| `{rule.path}`" not in page or rule.reason not in page] == []


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
