"""What a RayService looks like to KubeRay: its Serve config with Ray's keys, a language model, and an API key."""

import ast
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from components.payloads import require_key
from components.payloads.require_key import RequireKey
from components.ray_cluster.manifests import ray_cluster
from components.ray_service.api_key import FOLDER, config_map, problems_of_key
from components.ray_service.llm import Accelerator
from components.ray_service.manifests import connection, ray_service, ray_service_objects
from components.ray_service.rules import ValidRayService
from components.ray_service.settings import SERVICE_LABEL, RayServiceSettings
from components.storage.manifests import mounted
from core.nodes import NodePool
from kuberay import OperatorContext, serve_config, validate
from kuberay.serve import problems_of_serve_config
from kuberay.serve_config import ServeConfigSettings, ServeModel
from testbed.serve_configs import ACCEPTED, REFUSED, REFUSED_LATER, deployment

CLUSTER = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "labels": {"cost-center": "research"}}
CONFIG = {
    "applications": [
        {
            "name": "chat",
            "route_prefix": "/",
            "import_path": "chat:app",
            "deployments": [{"name": "C", "num_replicas": 2}],
        }
    ]
}
STEPS = {"gatewayClassName": "istio", "stepSizePercent": 10, "intervalSeconds": 30}
INCREMENTAL = {"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": STEPS}


def service(**settings: Any) -> RayServiceSettings:
    entry = {"name": "chat", "serveConfigV2": CONFIG, "cluster": CLUSTER, **settings}
    return TypeAdapter(ValidRayService).validate_python(entry, by_alias=True, by_name=False)


def rendered(**settings: Any) -> dict[str, Any]:
    made = service(**settings)
    return ray_service(made, ray_cluster(made.own_cluster, ()))


def test_kuberay_accepts_it() -> None:
    assert validate(rendered(rayClusterDeletionDelaySeconds=0, excludeHeadPodFromServeSvc=True), OPERATOR) == []


OPERATOR = OperatorContext("1.6.2")


@pytest.mark.parametrize(("gate", "rules"), [(True, []), (False, ["incremental-feature-gate"])])
def test_an_incremental_upgrade_needs_the_operators_gate(gate: bool, rules: list[str]) -> None:
    operator = OperatorContext("1.6.2", None, {"RayServiceIncrementalUpgrade": gate})
    assert [each.rule for each in validate(rendered(upgradeStrategy=INCREMENTAL), operator)] == rules


def test_the_serve_config_is_text_with_what_is_set_alone_and_no_list_is_empty() -> None:
    assert yaml.safe_load(rendered()["spec"]["serveConfigV2"]) == CONFIG
    assert "workerGroupSpecs" not in rendered()["spec"]["rayClusterConfig"]


def test_its_clusters_and_their_pods_have_the_services_label() -> None:
    body = rendered()
    assert body["metadata"]["labels"] == {"cost-center": "research", SERVICE_LABEL: "chat"}
    head = body["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]
    assert head["metadata"]["labels"][SERVICE_LABEL] == "chat"


@pytest.mark.parametrize(
    ("settings", "drain"),
    [
        ({}, "60s"),
        ({"graceful_shutdown_timeout_s": 90.5}, "131s"),
        ({"rayVersion": "2.57.0"}, "0s"),
        ({"rayVersion": "2.56.0"}, None),
        ({"drainTimeout": "5m"}, "5m"),
    ],
)
def test_its_workers_drain_until_serve_has_moved_their_requests(settings: dict[str, Any], drain: str | None) -> None:
    """Serve heeds a drain from Ray 2.60 on; before, a replica would stay until the drain ends, and be killed."""
    deployment = {"name": "C", **{key: value for key, value in settings.items() if "_" in key}}
    cluster = {**CLUSTER, **{key: value for key, value in settings.items() if "_" not in key}}
    cluster["image"] = f"rayproject/ray:{cluster['rayVersion']}"
    config = {
        "applications": [{"name": "chat", "route_prefix": "/", "import_path": "c:a", "deployments": [deployment]}]
    }
    own = service(serveConfigV2=config, cluster=cluster).own_cluster
    assert own.drain_timeout == drain
    head = ray_cluster(own, ())["spec"]["headGroupSpec"]["template"]["spec"]
    assert "env" not in head["containers"][0], "a head that answers requests does not end at once"


def test_neither_of_its_two_heads_during_an_update_is_evicted() -> None:
    found = {each.name: each for each in ray_service_objects(service(), {})}
    budget = found["head-disruption-budget"].body["spec"]
    assert budget["minAvailable"] == 2
    assert budget["selector"]["matchLabels"] == {SERVICE_LABEL: "chat", "ray.io/node-type": "head"}


def test_its_endpoint_is_serves_service_or_kuberays_gateway() -> None:
    assert connection(service(), "team-a", 8000)["endpoint"] == "http://chat-serve-svc.team-a.svc:8000"
    assert connection(service(upgradeStrategy=INCREMENTAL), "team-a", 8000)["gateway"] == "chat-gateway"


GROUP = {"groupName": "one", "replicas": 1}


def with_key(config: dict[str, Any] | None = None, **cluster: Any) -> RayServiceSettings:
    template = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "workerGroups": [GROUP], **cluster}
    served = {"applications": [{"import_path": "chat:app"}], **(config or {})}
    key = {"name": "chat", "key": "keys"}
    entry = {"name": "chat", "serveConfigV2": served, "apiKey": key, "cluster": template}
    return RayServiceSettings.model_validate(entry)


def spec(made: RayServiceSettings) -> dict[str, Any]:
    body = ray_service(made, ray_cluster(made.own_cluster, ()))
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"]["rayClusterConfig"])


def test_each_pod_has_the_program_and_the_keys() -> None:
    made = spec(with_key(env={"PYTHONPATH": "/code"}))
    for group in (made["headGroupSpec"], *made["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        env = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
        assert env["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"] == "require_key:middlewares"
        assert env["PYTHONPATH"] == f"{FOLDER}:/code"
        (volume,) = (each for each in pod["volumes"] if "projected" in each and each["name"] == "serve-api-key")
        program, secret = volume["projected"]["sources"]
        assert program == {"configMap": {"name": config_map("chat")["metadata"]["name"]}}
        assert secret == {"secret": {"name": "chat", "items": [{"key": "keys", "path": "keys"}]}}
    assert "def middlewares" in config_map("chat")["data"]["require_key.py"]


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (with_key(), []),
        (with_key({"grpc_options": {"grpc_servicer_functions": ["a.b"]}}), ["gRPC would pass without a key"]),
        (
            with_key(env={"RAY_SERVE_ENABLE_HA_PROXY": "1"}),
            ["RAY_SERVE_ENABLE_HA_PROXY of the head", "HA_PROXY of one"],
        ),
        (with_key(env={"RAY_SERVE_ENABLE_HA_PROXY": "0"}), []),
        (with_key(head={"env": {"PYTHONPATH": "/code"}}), ["PYTHONPATH of the head"]),
        (
            with_key(workerGroups=[{**GROUP, "env": {"RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "a:b"}}]),
            ["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH of one"],
        ),
    ],
)
def test_what_would_undo_it_is_refused(made: RayServiceSettings, found: list[str]) -> None:
    problems = [each.message for each in problems_of_key(made.config, spec(made))]
    assert len(problems) == len(found)
    assert all(text in message for text, message in zip(found, problems, strict=True))


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """What a client gets: the messages, or `passed` if the application gets the request."""
    keys = tmp_path / "keys"
    keys.write_text("first\n\n second \r\n")
    monkeypatch.setattr(require_key, "KEYS", keys)

    def asked(kind: str = "http", path: str = "/v1/models", **headers: str) -> list[Any]:
        got: list[Any] = []

        async def application(*_: Any) -> None:
            got.append("passed")

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            got.append(message.get("status", message.get("code", message.get("body"))))

        scope = {"type": kind, "path": path, "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}
        # It waits for nothing, so it needs no event loop.
        with pytest.raises(StopIteration):
            RequireKey(application)(scope, receive, send).send(None)
        return got

    return asked


@pytest.mark.parametrize("key", ["first", "second"])
@pytest.mark.parametrize("header", ["authorization", "Authorization"])
def test_each_key_is_admitted(ask: Callable[..., list[Any]], key: str, header: str) -> None:
    assert ask(**{header: f"Bearer {key}"}) == ["passed"]


@pytest.mark.parametrize("given", ["Bearer third", "Bearer ", "Bearer", "first", "Basic first", "", "Bearer first\n"])
def test_others_are_refused_except_for_health_checks(ask: Callable[..., list[Any]], given: str) -> None:
    assert ask(authorization=given) == ask() == ask(path="/-/routes") == [401, require_key.REFUSED]
    assert ask(kind="websocket") == [1008]
    assert ask(path="/-/healthz") == ask(kind="lifespan") == ["passed"]


POOL = NodePool(pool="a100", count=2, cpu="64", memory="512Gi", gpus=8)
LLM_CLUSTER = {"rayVersion": "2.60.0", "image": "registry.example.com/ray-llm:2.60.0"}


def with_model(cluster: dict[str, Any] | None = None, **llm: Any) -> RayServiceSettings:
    entry = {
        "name": "chat",
        "llm": {"model": "llama", "pool": "a100", **llm},
        "cluster": {**LLM_CLUSTER, **(cluster or {})},
    }
    return TypeAdapter(ValidRayService).validate_python(entry, by_alias=True, by_name=False)


def rendered_model(made: RayServiceSettings) -> dict[str, Any]:
    body = ray_service(made, ray_cluster(made.own_cluster, (POOL,)))
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


def config(**llm: Any) -> dict[str, Any]:
    (found,) = arguments(**llm)["llm_configs"]
    return dict(found)


def arguments(**llm: Any) -> dict[str, Any]:
    (application,) = yaml.safe_load(rendered_model(with_model(**llm))["serveConfigV2"])["applications"]
    assert application["import_path"] == "ray.serve.llm:build_openai_app"
    return dict(application["args"])


def test_it_becomes_a_config_of_serve_llm() -> None:
    assert config(source="meta-llama/Llama-3.1-8B-Instruct", tensorParallelSize=4, acceleratorType="A100") == {
        "model_loading_config": {"model_id": "llama", "model_source": "meta-llama/Llama-3.1-8B-Instruct"},
        "accelerator_type": "A100",
        "deployment_config": {"num_replicas": 1},
        "engine_kwargs": {"tensor_parallel_size": 4},
    }
    scaled = config(replicas=2, maxReplicas=4)["deployment_config"]
    expected = {"min_replicas": 2, "max_replicas": 4, "target_ongoing_requests": 32}
    assert scaled == {"autoscaling_config": expected}
    found = config(engineKwargs={"max_model_len": 8192})
    assert found["engine_kwargs"] == {"tensor_parallel_size": 1, "max_model_len": 8192}


def test_adapters_are_loaded_by_name() -> None:
    found = config(lora={"path": "s3://models/adapters"}, engineKwargs={"max_lora_rank": 64})
    assert found["lora_config"] == {
        "dynamic_lora_loading_path": "s3://models/adapters",
        "max_num_adapters_per_replica": 16,
    }
    assert found["engine_kwargs"] == {"tensor_parallel_size": 1, "enable_lora": True, "max_lora_rank": 64}


def test_a_model_with_several_replicas_outlives_the_worker_of_one_ingress() -> None:
    assert "ingress_deployment_config" not in arguments(maxReplicas=2)
    assert arguments(replicas=2)["ingress_deployment_config"] == {"num_replicas": 2, "max_replicas_per_node": 1}
    builder = source_of_ray("llm", "_internal", "serve", "core", "ingress", "builder.py")
    assert arguments(replicas=2).keys() <= fields(builder, "LLMServingArgs")


def test_each_replica_has_a_worker_with_its_gpus() -> None:
    (group,) = rendered_model(with_model(tensorParallelSize=4, replicas=2, maxReplicas=3))["rayClusterConfig"][
        "workerGroupSpecs"
    ]
    assert (group["minReplicas"], group["maxReplicas"]) == (2, 3)
    (container,) = group["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "30", "memory": "240Gi", "nvidia.com/gpu": "4"}


def test_head_and_workers_have_the_token_as_a_file() -> None:
    spec = rendered_model(with_model(huggingFaceToken={"name": "hugging-face", "key": "token"}))["rayClusterConfig"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        path = next(each["value"] for each in pod["containers"][0]["env"] if each["name"] == "HF_TOKEN_PATH")
        (mount,) = (each for each in pod["containers"][0]["volumeMounts"] if path.startswith(each["mountPath"]))
        (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
        assert volume["secret"] == {"secretName": "hugging-face", "items": [{"key": "token", "path": "token"}]}


def test_clients_get_the_address_of_the_api_and_models_are_in_the_cache() -> None:
    found = connection(with_model(), "team-a", 8000)
    assert found["openaiBaseUrl"] == "http://chat-serve-svc.team-a.svc:8000/v1"
    assert found["model"] == "llama"
    (mount,) = with_model(cache="models").own_cluster.storage
    assert (mount.name, mount.hf_home) == ("models", True)
    assert mounted((mount,), ()).env == {"HF_HOME": "/models"}


def source_of_ray(*path: str) -> ast.Module:
    """A file of the installed Ray. Its import needs the packages of ray[llm] or ray[serve]."""
    found = importlib.util.find_spec("ray")
    assert found is not None
    assert found.origin is not None
    return ast.parse(Path(found.origin).parent.joinpath(*path).read_text())


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (
            "LLMConfig",
            {"model_loading_config", "accelerator_type", "deployment_config", "lora_config", "engine_kwargs"},
        ),
        ("ModelLoadingConfig", {"model_id", "model_source"}),
        ("LoraConfig", {"dynamic_lora_loading_path", "max_num_adapters_per_replica"}),
    ],
)
def test_ray_knows_the_keys(model: str, keys: set[str]) -> None:
    assert keys <= fields(source_of_ray("llm", "_internal", "serve", "core", "configs", "llm_config.py"), model)


def test_ray_knows_the_accelerators() -> None:
    body = source_of_ray("util", "accelerators", "accelerators.py").body
    values = [
        each.value.value for each in body if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
    ]
    assert {*get_args(Accelerator)} <= {*values}


MODELS: dict[str, tuple[type[ServeModel], str, set[str]]] = {
    "ServeDeploySchema": (serve_config.ServeConfigSettings, "schema", set()),
    # Ray refuses host and port of an application, and so do we.
    "ServeApplicationSchema": (serve_config.ApplicationSettings, "schema", {"host", "port"}),
    "DeploymentSchema": (serve_config.DeploymentSettings, "schema", set()),
    "RayActorOptionsSchema": (serve_config.ActorOptionsSettings, "schema", set()),
    "HTTPOptionsSchema": (serve_config.HttpOptionsSettings, "schema", set()),
    "gRPCOptionsSchema": (serve_config.GrpcOptionsSettings, "schema", set()),
    "LoggingConfig": (serve_config.ServeLoggingSettings, "schema", set()),
    "TracingConfig": (serve_config.TracingSettings, "schema", set()),
    "AutoscalingConfig": (serve_config.ServeAutoscalingSettings, "config", set()),
}
"""Ray's models: ours, Ray's module, and the keys that ours do not have."""


def fields(module: ast.Module, model: str) -> set[str]:
    """The public fields of a model in such a file."""
    body = next(each for each in module.body if isinstance(each, ast.ClassDef) and each.name == model).body
    names = [each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("model", MODELS)
def test_every_key_of_ray_is_known_and_no_other(model: str) -> None:
    ours, module, without = MODELS[model]
    assert set(ours.model_fields) == fields(source_of_ray("serve", f"{module}.py"), model) - without


def problems(config: dict[str, Any]) -> list[str]:
    """Where a config is refused, by the model or by the rules."""
    try:
        made = TypeAdapter(ServeConfigSettings).validate_python(config)
    except ValidationError as error:
        return [str(each["loc"]) for each in error.errors()]
    return [str(each.path) for each in problems_of_serve_config(made)]


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_ray_accepts_is_accepted(name: str) -> None:
    assert problems(ACCEPTED[name]) == []


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_LATER])
def test_what_ray_refuses_is_refused(name: str) -> None:
    assert problems((REFUSED | REFUSED_LATER)[name])


def test_every_attribute_of_logs_is_known_and_no_other() -> None:
    from ray._common.logging_constants import LOGRECORD_STANDARD_ATTRS

    assert {*get_args(serve_config.LogAttribute)} == LOGRECORD_STANDARD_ATTRS


@given(label=st.text("aB1-_. ", max_size=4), selected=st.text("aB1-_.!in(), ", max_size=8))
def test_labels_that_ray_accepts_are_accepted_and_no_others(label: str, selected: str) -> None:
    from ray._private.label_utils import validate_label_selector

    selector = {label: selected}
    config = deployment(ray_actor_options={"label_selector": selector})
    assert bool(problems(config)) == bool(validate_label_selector(selector))


@pytest.mark.parametrize(
    ("key", "meant"),
    [("num_replica", "num_replicas"), ("numReplicas", "num_replicas"), ("max_concurrent_requests", None)],
)
def test_a_misspelt_key_is_refused_and_one_of_a_later_ray_is_passed_on(key: str, meant: str | None) -> None:
    config = {"applications": [{"import_path": "chat:app", "deployments": [{"name": "Chat", key: 2}]}]}
    if meant is None:
        made = TypeAdapter(ServeConfigSettings).validate_python(config)
        assert made.model_dump(mode="json", exclude_unset=True) == config
        return
    with pytest.raises(ValidationError, match=f"did you mean '{meant}'"):
        TypeAdapter(ServeConfigSettings).validate_python(config)
