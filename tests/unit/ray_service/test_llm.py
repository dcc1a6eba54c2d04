"""A language model of a service: its Serve config, its workers, and conflicting settings."""

import ast
import importlib.util
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import TypeAdapter

from components.ray_cluster.manifests import ray_cluster
from components.ray_service.llm import Accelerator
from components.ray_service.manifests import connection, ray_service
from components.ray_service.rules import ValidRayService
from components.ray_service.settings import RayServiceSettings
from components.storage.manifests import mounted
from core.nodes import NodePool
from core.problems import StackFileError
from kuberay import OperatorContext, validate
from stacks.load import parse

POOL = NodePool(pool="a100", count=2, cpu="64", memory="512Gi", gpus=8)
CLUSTER = {"rayVersion": "2.60.0", "image": "registry.example.com/ray-llm:2.60.0"}


def service(cluster: dict[str, Any] | None = None, **llm: Any) -> RayServiceSettings:
    entry = {
        "name": "chat",
        "llm": {"model": "llama", "pool": "a100", **llm},
        "cluster": {**CLUSTER, **(cluster or {})},
    }
    return TypeAdapter(ValidRayService).validate_python(entry, by_alias=True, by_name=False)


def rendered(made: RayServiceSettings) -> dict[str, Any]:
    body = ray_service(made, ray_cluster(made.own_cluster, (POOL,)))
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


def config(**llm: Any) -> dict[str, Any]:
    (application,) = yaml.safe_load(rendered(service(**llm))["serveConfigV2"])["applications"]
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
    (group,) = rendered(service(tensorParallelSize=4, replicas=2, maxReplicas=3))["rayClusterConfig"][
        "workerGroupSpecs"
    ]
    assert (group["minReplicas"], group["maxReplicas"]) == (2, 3)
    (container,) = group["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "30", "memory": "240Gi", "nvidia.com/gpu": "4"}


def test_head_and_workers_have_the_token_as_a_file() -> None:
    spec = rendered(service(huggingFaceToken={"name": "hugging-face", "key": "token"}))["rayClusterConfig"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        path = next(each["value"] for each in pod["containers"][0]["env"] if each["name"] == "HF_TOKEN_PATH")
        (mount,) = (each for each in pod["containers"][0]["volumeMounts"] if path.startswith(each["mountPath"]))
        (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
        assert volume["secret"] == {"secretName": "hugging-face", "items": [{"key": "token", "path": "token"}]}


def test_models_are_in_the_cache() -> None:
    (mount,) = service(cache="models").own_cluster.storage
    assert (mount.name, mount.hf_home) == ("models", True)
    assert mounted((mount,), ()).env == {"HF_HOME": "/models"}


def test_clients_get_the_address_of_the_api() -> None:
    found = connection(service(), "team-a", 8000)
    assert found["openaiBaseUrl"] == "http://chat-serve-svc.team-a.svc:8000/v1"
    assert found["model"] == "llama"


@pytest.mark.parametrize(
    ("llm", "more", "place", "why"),
    [
        ({"engineKwargs": {"tensor_parallel_size": 2}}, {}, "llm.engineKwargs", "tensorParallelSize"),
        ({"engineKwargs": {"pipeline_parallel_size": 2}}, {}, "llm.engineKwargs", "a replica is on one worker"),
        ({"engineKwargs": {"pipeline_parallel_size": [2]}}, {}, "llm.engineKwargs", "a replica is on one worker"),
        ({"engineKwargs": {"pipeline_parallel_size": "two"}}, {}, "llm.engineKwargs", "a replica is on one worker"),
        ({"pool": "#"}, {}, "llm.pool", "is not a name"),
        ({"replicas": 3, "maxReplicas": 2}, {}, "llm.replicas", "more than maxReplicas 2"),
        ({"acceleratorType": "A1000"}, {}, "llm.acceleratorType", "A100"),
        (
            {"cache": "models"},
            {"storage": [{"name": "other", "mountPath": "/o", "hfHome": True}]},
            "llm.cache",
            "HF_HOME",
        ),
        ({"cache": "unknown"}, {}, "services[0]", "unknown"),
        ({"pool": "h100"}, {}, "services[0]", "h100"),
        ({}, {"workerGroups": [{"groupName": "own"}]}, "cluster.workerGroups", "llm makes the workers"),
    ],
)
def test_conflicts_are_reported_at_their_setting(
    llm: dict[str, Any], more: dict[str, Any], place: str, why: str
) -> None:
    entry = {"name": "chat", "llm": {"model": "llama", "pool": "a100", **llm}, "cluster": {**CLUSTER, **more}}
    nodes = [{"pool": "a100", "count": 2, "cpu": 64, "memory": "512Gi", "gpus": 8}]
    storage = [{"name": name, "size": "1Ti", "storageClass": "nfs"} for name in ("models", "other")]
    with pytest.raises(StackFileError) as refused:
        parse({"nodes": nodes, "tenants": [{"name": "team-a", "storage": storage, "services": [entry]}]})
    assert place in str(refused.value)
    assert why in str(refused.value)


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
