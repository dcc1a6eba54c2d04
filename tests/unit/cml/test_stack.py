"""Clusters on Cloudera ML in a stack: its resources, its outputs, the plan, the impact, the encrypted key."""

import json
from pathlib import Path
from typing import Any

import pytest

from components.cml.manifests import Member, member_of, nodes, prefix, subdomain
from components.cml.settings import CmlSettings
from core.problems import StackFileError
from policies.configuration import Configuration
from stacks.commands.impact.comparison import impact_of
from stacks.commands.plan.report import cml_as_objects
from stacks.commands.review.reviewed import judged
from stacks.load import load, parse
from stacks.program.build import build
from stacks.program.config import running_stack
from stacks.settings import StackSettings
from testbed.recorder import record

FILE = Path(__file__).parents[2] / "stack_files" / "good" / "cml.yaml"
CLUSTER = {"name": "lab", "project": "p", "rayVersion": "2.60.0", "resources": {"cpu": 4, "memory": 16}}


def stack(*clusters: dict[str, Any], **others: Any) -> StackSettings:
    return parse({"cml": {"host": "https://ml.example.com", "clusters": list(clusters)}, **others})


def texts(before: StackSettings | None, after: StackSettings) -> list[str]:
    found = impact_of(before, after).objects
    return [f"{each.name} {effect.verdict}: {effect.text}" for each in found for effect in each.effects]


def test_a_stack_of_these_clusters_alone_needs_no_kubernetes() -> None:
    recorded = record(lambda: build(stack(CLUSTER)), stack="dev")
    kinds = {each.type for each in recorded.registered.values()}
    assert kinds == {
        "ray-platform:index:CmlRayCluster",
        "pulumi-python:dynamic/ray-platform:CmlClaim",
        "pulumi-python:dynamic/ray-platform:CmlNodes",
    }


def test_no_input_is_none_because_pulumi_would_not_send_it() -> None:
    settings = CmlSettings.model_validate({"host": "https://ml.example.com", "clusters": [CLUSTER]}, by_name=False)
    assert "null" not in json.dumps(nodes(settings, settings.clusters[0], "dev"))


def test_clusters_are_created_beside_those_on_kubernetes() -> None:
    both = stack(CLUSTER, tenants=[{"name": "team-a"}], operator={"install": "existing"})
    assert ("Namespace", "team-a") in {(each.kind, each.name) for each in impact_of(None, both).objects}
    assert "lab creates: its head is created, then its workers" in texts(None, both)


def test_the_plan_adds_up_what_the_quotas_have_to_hold() -> None:
    training, serving = cml_as_objects(load(FILE))
    assert (training["workers"], training["gpus"], training["cpu"], training["memory"]) == (4, 4, 68, 272)
    assert (serving["projects"], serving["workers"]) == (["abcd-efgh-1234", "other-project-5678"], 0)


def test_impact_reports_what_leaves_and_what_is_replaced() -> None:
    four, two = ({**CLUSTER, "numWorkers": count} for count in (4, 2))
    assert texts(stack(four), stack(four)) == []
    assert texts(stack(two), stack(four)) == ["lab creates: creates 2 workers of group workers"]
    [removed] = texts(stack(four), stack(two))
    assert removed.startswith("lab rolling: removes 2 workers of group workers: idle ones first")
    head = {"headResources": {"cpu": 4, "memory": 16}}
    [replaced] = texts(stack({**two, **head}), stack({**two, **head, "resources": {"cpu": 8, "memory": 16}}))
    assert replaced.startswith("lab rolling: replaces the workers of group workers")
    [whole] = texts(stack(two), stack({**two, "rayVersion": "2.59.0"}))
    assert whole.startswith("lab rolling: settings of the head change")
    [suspended] = texts(stack(two), stack({**two, "suspend": True}))
    assert suspended.startswith("lab rolling: is suspended")
    [deleted] = texts(stack(two), stack())
    assert deleted.startswith("lab deletes: all its applications are deleted at once")


def test_policies_judge_these_clusters() -> None:
    def violated(stack: StackSettings) -> list[str]:
        return [f"{each.rule.id}: {each.place}" for each in judged(Configuration(), "prod", None, stack).new]

    assert violated(load(FILE)) == []
    old = {**CLUSTER, "rayVersion": "2.53.0", "runtimeIdentifier": "docker.example.com/ray:latest"}
    assert violated(stack(old)) == [
        "cml-min-version: CmlRayCluster/lab: spec.rayVersion",
        "cml-no-latest: CmlRayCluster/lab: spec.head.runtime",
        "cml-no-latest: CmlRayCluster/lab: spec.groups.workers.runtime",
    ]


def test_no_name_of_one_cluster_is_one_of_another() -> None:
    assert member_of("ray.dev.a.b-workers-0", prefix("dev", "a")) == Member("b-workers", 0)
    assert member_of("ray.dev.a-b.workers-0", prefix("dev", "a")) is None
    assert member_of("ray.dev.a.b.head", prefix("dev", "a")) is None
    assert member_of("ray.dev.a.head", prefix("dev", "a")) == Member("head")
    assert member_of("ray.dev.a.head-1", prefix("dev", "a")) == Member("head", 1)


def test_a_subdomain_is_a_label_and_follows_from_name_and_project() -> None:
    settings = CmlSettings.model_validate({"host": "https://ml.example.com", "clusters": [CLUSTER]}, by_name=False)
    inputs = nodes(settings, settings.clusters[0], "a" * 80)
    first = subdomain(inputs, Member("workers", 1))
    assert len(first) <= 63
    assert len({first, subdomain(inputs, Member("workers", 2)), subdomain(inputs, Member("head"))}) == 3
    assert first == subdomain(inputs, Member("workers", 1))


def test_an_encrypted_key_is_the_only_encrypted_value() -> None:
    assert stack(CLUSTER, cmlApiKey={"secure": "AAAB"}).cml_api_key
    with pytest.raises(StackFileError, match="is encrypted, but must be plain text"):
        stack({**CLUSTER, "project": {"secure": "AAAB"}})
    with pytest.raises(StackFileError, match="is plain text: run `pulumi config set --secret") as refused:
        stack(CLUSTER, cmlApiKey="6e5f2ba1")
    assert "6e5f2ba1" not in str(refused.value)


def test_the_program_does_not_read_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    cml = json.dumps({"host": "https://ml.example.com", "clusters": [CLUSTER]})
    config = {"ray-platform:cml": cml, "ray-platform:cmlApiKey": "6e5f2ba1"}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(config))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps(["ray-platform:cmlApiKey"]))
    assert running_stack() == stack(CLUSTER)
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", "[]")
    with pytest.raises(StackFileError, match="cmlApiKey: is plain text") as refused:
        running_stack()
    assert "6e5f2ba1" not in str(refused.value)
