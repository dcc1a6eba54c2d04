"""`llm` of a stack on real pods, with a real vLLM and a tiny model: what it answers, and what a load and an edit do.
The Serve config is that of real GPUs, which the node counts and vLLM takes for CPUs."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx
import pytest

from components.payloads.require_key import REFUSED
from components.ray_service.settings import SERVICE_LABEL
from local.images import OPERATOR
from local.images.ray_llm import MODEL, RAY_LLM
from local.install import install_missing
from local.real_node import RealNode
from testbed import language_model
from testbed.language_model import NOT_COMPILED, QUESTION, TOKENS
from testbed.pods import serving
from testbed.pods.platform import NAMESPACE, Platform, brought_up, pods_cluster
from testbed.pods.serving import CLIENTS, KEY, Answers
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.llm, pytest.mark.timeout(2400, func_only=True)]

NAME = "llm"

SECONDS = 1200.0
"""For a replica to start: five processes import vLLM, each with ten seconds of CPU."""

TARGET = 4


def service(longest: int = 256, **llm: Any) -> dict[str, Any]:
    """The service. The GPUs' workers have more CPUs and memory than they request, so that all fit on the machine."""
    small = {"requests": {"cpu": "50m", "memory": "512Mi"}}
    worker = {"containers": [{"name": "ray-worker", "resources": small}]}
    group = {"groupName": "laptop-1gpu", "rayStartParams": {"object-store-memory": "100000000"}}
    return {
        "name": NAME,
        "waitFor": "ready",
        "waitTimeout": "40m",
        "apiKey": {"name": "chat-key", "key": "key"},
        "llm": {**language_model.llm(MODEL, longest), "pool": "laptop", **llm},
        "cluster": {
            "rayVersion": pods_cluster()["rayVersion"],
            "image": RAY_LLM.reference,
            "env": NOT_COMPILED,
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
    tenant |= {"clusters": [], "network": {"serveFrom": [CLIENTS]}}
    settings["nodes"] = [{"pool": "laptop", "count": 1, "cpu": 16, "memory": "20Gi", "gpus": 4}]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> Iterator[Platform]:
    """The stack without services, the Secret with the key, and a client in another namespace."""
    folder = tmp_path_factory.mktemp("llm")
    images = [OPERATOR.reference, RAY_LLM.reference]
    with steps.step("build what the cache lacks"):
        install_missing()
        RealNode(folder).build(images)
    with brought_up(folder, steps, without_services, images) as platform:
        serving.prepare_clients(platform, RAY_LLM.reference)
        yield platform


def serve(platform: Platform, **settings: Any) -> None:
    """Adds the service, or another version of it; `up` ends when it answers."""
    platform.stack.edit(lambda content: content["tenants"][0].update(services=[service(**settings)]))
    platform.stack.seconds = 3000.0
    platform.stack.up()


@contextmanager
def client(platform: Platform, key: str = KEY) -> Iterator[httpx.Client]:
    """Calls the service from this machine, as clients of OpenAI do."""
    headers = {"Authorization": f"Bearer {key}"}
    with (
        platform.forwarded(f"{NAME}-serve-svc", 8000) as address,
        httpx.Client(base_url=f"{address}/v1", headers=headers, trust_env=False, timeout=120) as client,
    ):
        yield client


def asked(platform: Platform, clients: int) -> AbstractContextManager[Answers]:
    """So many clients ask for whole answers while the block runs."""
    pattern = f'.*"completion_tokens": ?({TOKENS})[,}}].*'
    return serving.asked(platform, clients, NAME, json.dumps(QUESTION), pattern, timeout=120)


def workers(platform: Platform) -> dict[str, dict[str, Any]]:
    return platform.pods(f"{SERVICE_LABEL}={NAME},ray.io/node-type=worker", NAMESPACE)


def running(platform: Platform) -> dict[str, dict[str, str]]:
    """The running replicas of each deployment, with the addresses of their nodes, as Ray's dashboard has them."""
    (head,) = platform.pods(f"{SERVICE_LABEL}={NAME},ray.io/node-type=head", NAMESPACE).values()
    token = platform.token(head["metadata"]["labels"]["ray.io/cluster"])
    with platform.forwarded(f"{NAME}-head-svc", 8265) as address:
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{address}/api/serve/applications/", headers=headers, trust_env=False, timeout=60)
    deployments = answer.raise_for_status().json()["applications"][NAME]["deployments"]
    return {
        name.partition(":")[0]: {
            each["replica_id"]: str(each["node_ip"]) for each in deployment["replicas"] if each["state"] == "RUNNING"
        }
        for name, deployment in deployments.items()
    }


def it_answers_openais_clients_that_have_a_key(platform: Platform) -> None:
    with client(platform) as asking:
        language_model.answers(asking)
    with client(platform, "another") as asking:
        refused = asking.post("chat/completions", json=QUESTION)
        assert (refused.status_code, refused.content) == (401, REFUSED)


def a_load_adds_a_replica_with_its_worker(platform: Platform, steps: Steps) -> None:
    assert len(workers(platform)) == len(running(platform)["LLMServer"]) == 1
    with steps.step("from a load to the second replica"), asked(platform, 4 * TARGET) as answers:
        until(lambda: len(running(platform)["LLMServer"]) == 2, "a second replica runs", SECONDS, 10)
    assert (answers.others, set(answers.served)) == ({}, {str(TOKENS)})
    assert len(workers(platform)) == 2


def two_replicas_answer_while_an_edit_restarts_them(platform: Platform, steps: Steps) -> None:
    serve(platform, replicas=2)
    before = running(platform)
    assert all(len(set(nodes.values())) == 2 for nodes in before.values()), "each deployment is on both workers"
    with asked(platform, TARGET) as answers, steps.step("`pulumi up` of another engine setting, two replicas"):
        serve(platform, replicas=2, longest=224)
    assert (answers.others, set(answers.served)) == ({}, {str(TOKENS)})
    assert not before["LLMServer"].keys() & running(platform)["LLMServer"].keys()


def a_lost_worker_is_replaced_while_the_other_answers(platform: Platform, steps: Steps) -> None:
    (lost, address), _ = running(platform)["LLMServer"].items()
    (worker,) = (name for name, pod in workers(platform).items() if pod["status"]["podIP"] == address)
    with asked(platform, TARGET) as answers, steps.step("from the loss of a worker to two replicas"):
        platform.kubectl("delete", "pod", worker, "--namespace", NAMESPACE, "--force", "--grace-period=0")
        until(lambda: len(running(platform)["LLMServer"].keys() - {lost}) == 2, "two replicas run", SECONDS, 10)
    whole, others = answers.served.get(str(TOKENS), 0), sum(answers.others.values())
    assert others < whole / 10, f"{whole} whole answers and {others} others: {answers.others}"


def test_a_model_of_a_stack_answers(platform: Platform, steps: Steps) -> None:
    with steps.step("`pulumi up` of a model, until it answers"):
        serve(platform, maxReplicas=2, targetOngoingRequests=TARGET)
    it_answers_openais_clients_that_have_a_key(platform)
    a_load_adds_a_replica_with_its_worker(platform, steps)
    two_replicas_answer_while_an_edit_restarts_them(platform, steps)
    a_lost_worker_is_replaced_while_the_other_answers(platform, steps)
    it_answers_openais_clients_that_have_a_key(platform)
