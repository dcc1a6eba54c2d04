"""Clusters on Cloudera ML in a stack: resources, outputs, plan, impact, what they serve, and the key."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from components.cml.client import CmlError
from components.cml.manifests import Member, connection, member_of, nodes, prefix, subdomain
from components.cml.reconcile import NotReadyError
from components.cml.serving import NOTHING, serve_config, serving
from components.cml.settings import CmlSettings
from components.ray_service.llm import LanguageModelSettings
from core.problems import StackFileError
from kuberay.serve_config import ServeConfigSettings
from policies.configuration import Configuration
from stacks.commands.impact.comparison import impact_of
from stacks.commands.plan.report import cml_as_objects
from stacks.commands.review.reviewed import judged
from stacks.load import load, parse
from stacks.program.build import build
from stacks.program.config import running_stack
from stacks.settings import StackSettings
from testbed.commands import stacks
from testbed.recorder import record
from tests.unit.cml.conftest import Place

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


def test_a_subdomain_is_a_label_and_follows_from_name_and_project() -> None:
    settings = CmlSettings.model_validate({"host": "https://ml.example.com", "clusters": [CLUSTER]}, by_name=False)
    inputs = nodes(settings, settings.clusters[0], "a" * 80)
    # Pulumi would not send None.
    assert "null" not in json.dumps(inputs)
    first = subdomain(inputs, Member("workers", 1))
    assert len(first) <= 63
    assert len({first, subdomain(inputs, Member("workers", 2)), subdomain(inputs, Member("head"))}) == 3
    assert first == subdomain(inputs, Member("workers", 1))


def test_clusters_are_created_beside_those_on_kubernetes() -> None:
    both = stack(CLUSTER, tenants=[{"name": "team-a"}], operator={"install": "existing"})
    assert ("Namespace", "team-a") in {(each.kind, each.name) for each in impact_of(None, both).objects}
    assert "lab creates: its head is created, then its workers" in texts(None, both)


def test_the_plan_adds_up_what_the_quotas_have_to_hold() -> None:
    training, serving = cml_as_objects(load(FILE))
    assert (training["workers"], training["gpus"], training["cpu"], training["memory"]) == (4, 4, 68, 272)
    assert (serving["projects"], serving["workers"]) == (["abcd-efgh-1234", "other-project-5678"], 0)
    assert (training["cost"], serving["cost"]) == (10.0, 0.0)
    [without_price] = cml_as_objects(stack({**WITH_GPUS, "numWorkers": 3}))
    [with_option] = cml_as_objects(stack({**WITH_GPUS, "numWorkers": 3}), 4.5)
    assert (without_price["cost"], with_option["cost"]) == (None, 27.0)
    assert (
        "| training | abcd-efgh-1234 | 4 | 4 | 68 | 272 | 10.00 |" in stacks("plan", FILE, "--format=markdown").output
    )


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
    [renewed] = texts(stack(two), stack({**two, "tokenGeneration": 2}))
    assert renewed.endswith("stored in the cluster are lost; callers need the new token and key of Serve")
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


WITH_GPUS = {**CLUSTER, "resources": {"cpu": 4, "memory": 16, "gpus": 2}}


CHAT = {"name": "chat", "route_prefix": "/chat", "import_path": "chat:app", "args": {"greeting": None}}
PREFIX = "ray.dev.training"


def serves(*applications: dict[str, Any]) -> dict[str, Any]:
    return {"serveConfigV2": {"applications": list(applications)}}


def stack_of(**changes: Any) -> StackSettings:
    return stack({**WITH_GPUS, **changes})


def test_a_config_is_sent_as_it_is_configured_with_a_proxy_in_the_head_alone() -> None:
    settings = ServeConfigSettings.model_validate({"applications": [CHAT], "http_options": {"request_timeout_s": 60}})
    config = json.loads(serve_config(settings, None))
    assert config == {
        "applications": [CHAT],
        "proxy_location": "HeadOnly",
        "http_options": {"request_timeout_s": 60, "host": "127.0.0.1", "port": 8000, "root_path": "/serve"},
    }
    assert serve_config(None, None) == ""


def test_a_language_model_becomes_one_application() -> None:
    llm = LanguageModelSettings(model="chat", source="meta-llama/Llama-3.1-8B", tensor_parallel_size=2, replicas=3)
    [application] = json.loads(serve_config(None, llm))["applications"]
    [model] = application["args"]["llm_configs"]
    assert application["import_path"] == "ray.serve.llm:build_openai_app"
    assert (model["engine_kwargs"], model["deployment_config"]) == ({"tensor_parallel_size": 2}, {"num_replicas": 3})


def test_what_differs_is_found_and_defaults_of_ray_are_no_difference() -> None:
    config = serve_config(ServeConfigSettings.model_validate({"applications": [CHAT]}), None)
    as_ray_has_it: dict[str, Any] = {**CHAT, "args": {"greeting": None, "added": 1}, "runtime_env": {}}
    runs: dict[str, dict[str, Any]] = {"chat": {"status": "RUNNING", "deployed_app_config": as_ray_has_it}}
    assert str(serving(config, runs)) == ""
    other: dict[str, dict[str, Any]] = {
        "chat": {"status": "RUNNING", "deployed_app_config": {**CHAT, "import_path": "chat:other"}}
    }
    assert str(serving(config, other)) == "the Serve config differs"
    assert str(serving(config, {})) == "the Serve config differs; chat is missing"
    by_hand = {**runs, "mine": {"status": "DEPLOY_FAILED", "deployed_app_config": None}}
    assert str(serving(config, by_hand)) == ""
    assert serving(NOTHING, runs).differs
    assert not serving(NOTHING, {"mine": by_hand["mine"]}).differs


def test_of_a_traceback_its_beginning_and_its_error_are_shown() -> None:
    config = serve_config(ServeConfigSettings.model_validate({"applications": [CHAT]}), None)
    error = "ImportError: No module named 'chat'\n    For further information visit https://errors.pydantic.dev\n"
    message = f"Deploying failed:\nTraceback (most recent call last):\n  File ...\n{error}"
    deployments = {"Chat": {"status": "UPDATING", "message": "1 replica waits for CPUs"}}
    failed: dict[str, dict[str, Any]] = {
        "chat": {"status": "DEPLOY_FAILED", "message": message, "deployed_app_config": CHAT, "deployments": deployments}
    }
    assert serving(config, failed).waiting == {
        "chat": "DEPLOY_FAILED: Deploying failed: ImportError: No module named 'chat': "
        "deployment Chat: 1 replica waits for CPUs"
    }


def test_impact_names_the_applications() -> None:
    def texts(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
        found = impact_of(stack_of(**before), stack_of(**after)).objects
        return [f"{effect.verdict}: {effect.text}" for each in found for effect in each.effects]

    assert texts({}, serves(CHAT)) == ["creates: application chat of Serve is deployed on the workers"]
    assert texts(serves(CHAT), serves({**CHAT, "import_path": "chat:other"})) == [
        "rolling: application chat of Serve is updated by Serve; no node ends"
    ]
    assert texts(serves(CHAT), {}) == ["deletes: application chat of Serve ends, with the requests that run"]


def test_the_endpoint_is_below_the_head(place: Place) -> None:
    settings = place.settings(llm={"model": "chat"})
    found = connection(settings.clusters[0], place.inputs(llm={"model": "chat"}))
    assert found["endpoint"] == f"{found['dashboardUrl']}/serve"
    assert found["openaiBaseUrl"] == f"{found['endpoint']}/v1"
    assert "endpoint" not in connection(place.settings().clusters[0], place.inputs())


@pytest.mark.parametrize("status", ["DEPLOYING", "UNHEALTHY"])
def test_an_update_sends_the_config_and_waits_until_all_applications_run(place: Place, status: str) -> None:
    place.ray.statuses["chat"] = status
    with pytest.raises(NotReadyError, match=f"does not serve in time: chat is {status}: chat cannot start"):
        place.make(place.inputs(readyTimeout="1s", **serves(CHAT)))
    del place.ray.statuses["chat"]
    made = place.make(place.inputs(**serves(CHAT)))
    assert made["state"] == "ready"
    assert place.ray.configs[PREFIX]["applications"] == [CHAT]
    assert place.lines[-1] == f"training: 2 workers have joined; Serve: chat is {status}: chat cannot start"


def test_an_application_that_fails_ends_the_update_at_once_and_the_next_one_sends_it_again(place: Place) -> None:
    place.ray.statuses["chat"] = "DEPLOY_FAILED"
    begun = time.monotonic()
    for _ in range(2):
        with pytest.raises(NotReadyError, match="does not serve: chat is DEPLOY_FAILED: chat cannot start"):
            place.make(place.inputs(readyTimeout="10m", **serves(CHAT)))
    assert time.monotonic() - begun < 60
    with pytest.raises(CmlError, match="Ray refuses the Serve config of Ray cluster training: a config of that name"):
        place.make(place.inputs(**serves({**CHAT, "name": "refused"})))


def test_a_failure_counts_only_once_lost_workers_are_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.make(place.inputs(**serves(CHAT)))
    start = place.ray.start

    def runs_again(*arguments: Any) -> None:
        start(*arguments)
        place.ray.statuses.clear()

    monkeypatch.setattr(place.ray, "start", runs_again)
    place.workspace.fail(place.app("workers-1"))
    place.ray.statuses["chat"] = "DEPLOY_FAILED"
    assert place.make(place.inputs(**serves(CHAT)))["state"] == "ready"


def test_an_application_that_leaves_the_stack_file_ends_and_what_others_deployed_stays(place: Place) -> None:
    place.make(place.inputs(**serves(CHAT)))
    place.make(place.inputs())
    assert place.ray.configs[PREFIX]["applications"] == [CHAT]
    client = place.applications(place.inputs(), served=True)
    client.make(place.lines.append, (0.01,))
    assert place.ray.configs[PREFIX]["applications"] == []


def test_a_head_that_was_replaced_gets_the_config_again_and_a_suspended_cluster_ends_it_first(place: Place) -> None:
    place.make(place.inputs(**serves(CHAT)))
    place.workspace.fail(place.app("head"))
    place.make(place.inputs(**serves(CHAT)))
    assert place.ray.configs[PREFIX]["applications"] == [CHAT]
    assert place.workspace.created == 6
    place.make(place.inputs(suspend=True, **serves(CHAT)))
    assert place.names == []
    assert place.ray.configs[PREFIX]["applications"] == []


def test_a_runtime_without_serve_is_named_and_does_not_keep_a_cluster_from_being_suspended(place: Place) -> None:
    place.ray.has_serve = False
    with pytest.raises(CmlError, match="the runtime of Ray cluster training has no Ray Serve: use a runtime with it"):
        place.make(place.inputs(**serves(CHAT)))
    place.make(place.inputs(suspend=True, **serves(CHAT)))
    assert place.names == []
