"""A tiny model that a real vLLM serves on CPUs by `llm` of a stack file, and what it has to answer."""

from typing import Any

import httpx

from local.images.ray_llm import OFFLINE

TOKENS = 8

QUESTION = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": TOKENS,
    "ignore_eos": True,
}

NOT_COMPILED = {"TORCHDYNAMO_DISABLE": "1"}
"""Variable without which vLLM compiles its sampler: seconds, and a compiler that the image does not have."""

ON_CPUS = {**dict(each.split("=", 1) for each in OFFLINE), "VLLM_CPU_KVCACHE_SPACE": "1", **NOT_COMPILED}
"""Variables for a vLLM outside the image, which has the others."""


def llm(source: str, longest: int, **engine: Any) -> dict[str, Any]:
    """`llm`. `source`: the folder of the model; `longest`: tokens of question and answer; `engine`: more of
    `engineKwargs`."""
    few: dict[str, Any] = {"max_model_len": longest, "enforce_eager": True, "num_gpu_blocks_override": 64}
    return {"model": QUESTION["model"], "source": source, "engineKwargs": {**few, **engine}}


def answers(client: httpx.Client) -> None:
    """Fails the test if clients of OpenAI would get less than whole answers. `client`: at the `base_url` for them."""
    assert [each["id"] for each in client.get("models").json()["data"]] == [QUESTION["model"]]
    answer = client.post("chat/completions", json=QUESTION)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] == TOKENS
    streamed = client.post("chat/completions", json={**QUESTION, "stream": True}).text
    assert streamed.count("chat.completion.chunk") >= TOKENS
    assert streamed.rstrip().endswith("data: [DONE]")
