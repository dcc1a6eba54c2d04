"""What a RayService looks like to KubeRay, with a language model and an API key, and conflicting settings."""

import ast
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import TypeAdapter

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
from kuberay import OperatorContext, validate

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


def test_the_serve_config_is_text_with_what_is_set_alone() -> None:
    assert yaml.safe_load(rendered()["spec"]["serveConfigV2"]) == CONFIG


def test_it_has_no_empty_list_which_kuberay_would_drop() -> None:
    assert "workerGroupSpecs" not in rendered()["spec"]["rayClusterConfig"]


def test_its_clusters_and_their_pods_have_the_services_label() -> None:
    body = rendered()
    assert body["metadata"]["labels"] == {"cost-center": "research", SERVICE_LABEL: "chat"}
    head = body["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]
    assert head["metadata"]["labels"][SERVICE_LABEL] == "chat"


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
def test_others_are_refused(ask: Callable[..., list[Any]], given: str) -> None:
    assert ask(authorization=given) == [401, require_key.REFUSED]


def test_without_a_header_requests_are_refused(ask: Callable[..., list[Any]]) -> None:
    assert ask() == [401, require_key.REFUSED]
    assert ask(kind="websocket") == [1008]
    assert ask(path="/-/routes") == [401, require_key.REFUSED]


def test_health_checks_and_what_is_no_request_pass(ask: Callable[..., list[Any]]) -> None:
    assert ask(path="/-/healthz") == ["passed"]
    assert ask(kind="lifespan") == ["passed"]


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
    (application,) = yaml.safe_load(rendered_model(with_model(**llm))["serveConfigV2"])["applications"]
    assert application["import_path"] == "ray.serve.llm:build_openai_app"
    (found,) = application["args"]["llm_configs"]
    return dict(found)


def test_it_becomes_a_config_of_serve_llm() -> None:
    assert config(source="meta-llama/Llama-3.1-8B-Instruct", tensorParallelSize=4, acceleratorType="A100") == {
        "model_loading_config": {"model_id": "llama", "model_source": "meta-llama/Llama-3.1-8B-Instruct"},
        "accelerator_type": "A100",
        "deployment_config": {"num_replicas": 1},
        "engine_kwargs": {"tensor_parallel_size": 4},
    }


def test_replicas_scale_between_their_bounds() -> None:
    scaled = config(replicas=2, maxReplicas=4)["deployment_config"]
    assert scaled == {"autoscaling_config": {"min_replicas": 2, "max_replicas": 4}}


def test_settings_of_the_engine_are_passed_on() -> None:
    found = config(engineKwargs={"max_model_len": 8192})
    assert found["engine_kwargs"] == {"tensor_parallel_size": 1, "max_model_len": 8192}


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


def test_models_are_in_the_cache() -> None:
    (mount,) = with_model(cache="models").own_cluster.storage
    assert (mount.name, mount.hf_home) == ("models", True)
    assert mounted((mount,), ()).env == {"HF_HOME": "/models"}


def test_clients_get_the_address_of_the_api() -> None:
    found = connection(with_model(), "team-a", 8000)
    assert found["openaiBaseUrl"] == "http://chat-serve-svc.team-a.svc:8000/v1"
    assert found["model"] == "llama"


def source_of_ray(*path: str) -> ast.Module:
    """A file of the installed Ray. Its import needs the packages of ray[llm]."""
    found = importlib.util.find_spec("ray")
    assert found is not None
    assert found.origin is not None
    return ast.parse(Path(found.origin).parent.joinpath(*path).read_text())


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        ("LLMConfig", {"model_loading_config", "accelerator_type", "deployment_config", "engine_kwargs"}),
        ("ModelLoadingConfig", {"model_id", "model_source"}),
    ],
)
def test_ray_knows_the_keys(model: str, keys: set[str]) -> None:
    module = source_of_ray("llm", "_internal", "serve", "core", "configs", "llm_config.py")
    body = next(each for each in module.body if isinstance(each, ast.ClassDef) and each.name == model).body
    fields = [each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    assert keys <= {*fields}


def test_ray_knows_the_accelerators() -> None:
    body = source_of_ray("util", "accelerators", "accelerators.py").body
    values = [
        each.value.value for each in body if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
    ]
    assert {*get_args(Accelerator)} <= {*values}
