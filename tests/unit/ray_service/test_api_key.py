"""A key before the applications of a service: what its pods have, and whom the program admits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.payloads import require_key
from components.payloads.require_key import RequireKey
from components.ray_cluster.manifests import ray_cluster
from components.ray_service.api_key import FOLDER, config_map, problems_of_key
from components.ray_service.manifests import ray_service
from components.ray_service.settings import RayServiceSettings
from kuberay import OperatorContext, validate

GROUP = {"groupName": "one", "replicas": 1}


def service(config: dict[str, Any] | None = None, **cluster: Any) -> RayServiceSettings:
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
    made = spec(service(env={"PYTHONPATH": "/code"}))
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
        (service(), []),
        (service({"grpc_options": {"grpc_servicer_functions": ["a.b"]}}), ["gRPC would pass without a key"]),
        (service(env={"RAY_SERVE_ENABLE_HA_PROXY": "1"}), ["RAY_SERVE_ENABLE_HA_PROXY of the head", "HA_PROXY of one"]),
        (service(env={"RAY_SERVE_ENABLE_HA_PROXY": "0"}), []),
        (service(head={"env": {"PYTHONPATH": "/code"}}), ["PYTHONPATH of the head"]),
        (
            service(workerGroups=[{**GROUP, "env": {"RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "a:b"}}]),
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
