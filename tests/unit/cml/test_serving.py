"""What a cluster serves: its Serve config, the rules for it, and what `up` does. Ray is simulated, unlike in
tests/engine/test_cml.py."""

import json
import time
from typing import Any

import pytest

from components.cml.client import CmlError
from components.cml.manifests import connection
from components.cml.reconcile import NotReadyError
from components.cml.serving import NOTHING, serve_config, serving
from components.ray_service.llm import LanguageModelSettings
from components.ray_service.serve_config import ServeConfigSettings
from core.problems import StackFileError
from stacks.commands.impact.comparison import impact_of
from stacks.load import parse
from stacks.settings import StackSettings
from tests.unit.cml.conftest import Place

CLUSTER = {"name": "lab", "project": "p", "rayVersion": "2.60.0", "resources": {"cpu": 4, "memory": 16, "gpus": 2}}
CHAT = {"name": "chat", "route_prefix": "/chat", "import_path": "chat:app", "args": {"greeting": None}}
PREFIX = "ray.dev.training"


def serves(*applications: dict[str, Any]) -> dict[str, Any]:
    return {"serveConfigV2": {"applications": list(applications)}}


def stack(**changes: Any) -> StackSettings:
    return parse({"cml": {"host": "https://ml.example.com", "clusters": [{**CLUSTER, **changes}]}})


def problems(**changes: Any) -> str:
    with pytest.raises(StackFileError) as refused:
        stack(**changes)
    return str(refused.value)


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
    message = "Deploying failed:\nTraceback (most recent call last):\n  File ...\nImportError: No module named 'chat'\n"
    deployments = {"Chat": {"status": "UPDATING", "message": "1 replica waits for CPUs"}}
    failed: dict[str, dict[str, Any]] = {
        "chat": {"status": "DEPLOY_FAILED", "message": message, "deployed_app_config": CHAT, "deployments": deployments}
    }
    assert serving(config, failed).waiting == {
        "chat": "DEPLOY_FAILED: Deploying failed: ImportError: No module named 'chat': "
        "deployment Chat: 1 replica waits for CPUs"
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"llm": {"model": "m", "maxReplicas": 3}}, "and the workers hold 2 of them"),
        ({"llm": {"model": "m", "replicas": 2, "maxReplicas": 1}}, "replicas 2 is more than maxReplicas 1"),
        (serves({**CHAT, "import_path": "chat"}), "'chat' is not the place of an application"),
        (serves(CHAT, CHAT), "'chat' is that of"),
    ],
)
def test_conflicts_are_reported(changes: dict[str, Any], expected: str) -> None:
    assert expected in problems(**changes)


def test_impact_names_the_applications() -> None:
    def texts(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
        found = impact_of(stack(**before), stack(**after)).objects
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


def test_an_update_sends_the_config_and_waits_until_all_applications_run(place: Place) -> None:
    place.ray.statuses["chat"] = "DEPLOYING"
    with pytest.raises(NotReadyError, match="does not serve in time: chat is DEPLOYING: chat cannot start"):
        place.make(place.inputs(readyTimeout="1s", **serves(CHAT)))
    del place.ray.statuses["chat"]
    made = place.make(place.inputs(**serves(CHAT)))
    assert made["state"] == "ready"
    assert place.ray.configs[PREFIX]["applications"] == [CHAT]
    assert place.lines[-1] == "training: 2 workers have joined; Serve: chat is DEPLOYING: chat cannot start"


def test_an_application_that_fails_ends_the_update_at_once_and_the_next_one_sends_it_again(place: Place) -> None:
    place.ray.statuses["chat"] = "DEPLOY_FAILED"
    begun = time.monotonic()
    for _ in range(2):
        with pytest.raises(NotReadyError, match="does not serve: chat is DEPLOY_FAILED: chat cannot start"):
            place.make(place.inputs(readyTimeout="10m", **serves(CHAT)))
    assert time.monotonic() - begun < 60
    with pytest.raises(CmlError, match="Ray refuses the Serve config of Ray cluster training: a config of that name"):
        place.make(place.inputs(**serves({**CHAT, "name": "refused"})))


def test_an_application_that_leaves_the_stack_file_ends_and_what_others_deployed_stays(place: Place) -> None:
    place.make(place.inputs(**serves(CHAT)))
    place.make(place.inputs())
    assert place.ray.configs[PREFIX]["applications"] == [CHAT]
    client = place.applications(place.inputs(), served=True)
    client.make(place.lines.append, (0.01,))
    assert place.ray.configs[PREFIX]["applications"] == []


def test_a_suspended_cluster_first_ends_what_it_serves(place: Place) -> None:
    place.make(place.inputs(**serves(CHAT)))
    place.make(place.inputs(suspend=True, **serves(CHAT)))
    assert place.names == []
    assert place.ray.configs[PREFIX]["applications"] == []


def test_a_head_that_was_replaced_gets_the_config_again(place: Place) -> None:
    place.make(place.inputs(**serves(CHAT)))
    place.workspace.fail(place.app("head"))
    place.make(place.inputs(**serves(CHAT)))
    assert place.ray.configs[PREFIX]["applications"] == [CHAT]
    assert place.workspace.created == 6


def test_a_runtime_without_serve_is_named_and_does_not_keep_a_cluster_from_being_suspended(place: Place) -> None:
    place.ray.has_serve = False
    with pytest.raises(CmlError, match="the runtime of Ray cluster training has no Ray Serve: use a runtime with it"):
        place.make(place.inputs(**serves(CHAT)))
    place.make(place.inputs(suspend=True, **serves(CHAT)))
    assert place.names == []
