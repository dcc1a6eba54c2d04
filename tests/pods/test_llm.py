"""`llm` of a stack on real pods, with a real vLLM and a tiny model. The Serve config is that of real GPUs, which the
node counts and vLLM takes for CPUs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import yaml

from components.payloads.require_key import REFUSED
from local.images import OPERATOR
from local.images.ray_llm import MODEL, RAY_LLM
from local.install import install_missing
from local.real_node import RealNode
from testbed.pods.platform import NAMESPACE, Platform, brought_up, pods_cluster
from testbed.pods.serving import KEY
from testbed.pods.steps import Steps

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.llm, pytest.mark.timeout(2400, func_only=True)]

NAME = "llm"

TOKENS = 8

QUESTION = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": TOKENS,
    "ignore_eos": True,
}


def service() -> dict[str, Any]:
    """The service. The GPUs' workers have more CPUs and memory than they request, so that all fit on the machine."""
    small = {"requests": {"cpu": "50m", "memory": "512Mi"}}
    worker = {"containers": [{"name": "ray-worker", "resources": small}]}
    group = {"groupName": "laptop-1gpu", "rayStartParams": {"object-store-memory": "100000000"}}
    return {
        "name": NAME,
        "waitFor": "ready",
        "waitTimeout": "40m",
        "apiKey": {"name": "chat-key", "key": "key"},
        "llm": {
            "model": QUESTION["model"],
            "source": MODEL,
            "pool": "laptop",
            "engineKwargs": {"max_model_len": 256, "enforce_eager": True, "num_gpu_blocks_override": 64},
        },
        "cluster": {
            "rayVersion": pods_cluster()["rayVersion"],
            "image": RAY_LLM.reference,
            "env": {"TORCHDYNAMO_DISABLE": "1"},  # vLLM's sampler would be compiled, and the image has no compiler
            "head": pods_cluster()["head"],
            "overrides": {
                "autoscalerOptions": {"resources": small},
                "workerGroupSpecs": [{**group, "template": {"spec": worker}}],
            },
        },
    }


def without_services(settings: dict[str, Any]) -> None:
    """Each worker gets a quarter of this pool's node."""
    (tenant,) = settings["tenants"]
    tenant["clusters"] = []
    settings["nodes"] = [{"pool": "laptop", "count": 1, "cpu": 16, "memory": "20Gi", "gpus": 4}]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> Iterator[Platform]:
    """The stack without services, with the Secret with the key."""
    folder = tmp_path_factory.mktemp("llm")
    images = [OPERATOR.reference, RAY_LLM.reference]
    with steps.step("build what the cache lacks"):
        install_missing()
        RealNode(folder).build(images)
    with brought_up(folder, steps, without_services, images) as platform:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "chat-key"}, "stringData": {"key": KEY}}
        platform.kubectl("create", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump(secret))
        yield platform


def serve(platform: Platform) -> None:
    """Adds the service; `up` ends when it answers."""
    platform.stack.edit(lambda content: content["tenants"][0].update(services=[service()]))
    platform.stack.seconds = 3000.0
    platform.stack.up()


@contextmanager
def client(platform: Platform, key: str = KEY) -> Iterator[httpx.Client]:
    """Calls the service from this machine."""
    headers = {"Authorization": f"Bearer {key}"}
    with (
        platform.forwarded(f"{NAME}-serve-svc", 8000) as address,
        httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=120) as client,
    ):
        yield client


def it_answers_openais_clients_that_have_a_key(platform: Platform) -> None:
    with client(platform) as asking:
        assert [each["id"] for each in asking.get("/v1/models").json()["data"]] == ["tiny"]
        answer = asking.post("/v1/chat/completions", json=QUESTION)
        assert answer.status_code == 200, answer.text
        assert answer.json()["usage"]["completion_tokens"] == TOKENS
        streamed = asking.post("/v1/chat/completions", json={**QUESTION, "stream": True}).text
        assert streamed.count("chat.completion.chunk") >= TOKENS
        assert streamed.rstrip().endswith("data: [DONE]")
    with client(platform, "another") as asking:
        refused = asking.post("/v1/chat/completions", json=QUESTION)
        assert (refused.status_code, refused.content) == (401, REFUSED)


def test_a_model_of_a_stack_answers(platform: Platform, steps: Steps) -> None:
    with steps.step("`pulumi up` of a model, until it answers"):
        serve(platform)
    it_answers_openais_clients_that_have_a_key(platform)
