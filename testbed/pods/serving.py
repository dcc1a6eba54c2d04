"""A service on real pods whose application names its version, and a client in another namespace that asks it."""

import json
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from components.payloads.require_key import REFUSED
from local.images.ray import RAY
from testbed.pods.platform import NAMESPACE, Platform, pods_cluster

NAME = "chat"

CLIENTS = "clients"
"""The client's namespace."""

KEY = "not-a-secret-of-anybody"

CODE = """
    import asyncio

    from fastapi import FastAPI
    from ray import serve

    api = FastAPI()

    @serve.deployment(ray_actor_options={"num_cpus": 0.1})
    class Model:
        def __init__(self, version, seconds=0):
            self.version, self.seconds = version, seconds

        async def chat(self, messages):
            await asyncio.sleep(self.seconds)
            return {"version": self.version}

        async def __call__(self, request):
            return {"version": self.version}

    @serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1})
    @serve.ingress(api)
    class OpenAiIngress:
        def __init__(self, model):
            self.model = model

        @api.post("/v1/chat/completions")
        async def chat(self, request: dict):
            return await self.model.chat.remote(request["messages"])

    def build(args):
        if not args["version"]:
            raise ValueError("the version is not set")
        return OpenAiIngress.bind(Model.bind(**args))

    def build_model(args):
        return Model.options(num_replicas=2).bind(args["version"])
"""
"""The application: the graph of Ray Serve LLM (an ingress that speaks as OpenAI does, and its model's deployment), with
a model that names its version; or the model alone. It asks for no key."""

ASK = """
    import collections, http.client, json, sys, threading
    address, key, pause, clients = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    answers, lock, ended = collections.Counter(), threading.Lock(), threading.Event()

    def ask(has_key):
        connection = http.client.HTTPConnection(address, 8000, timeout=30)
        try:
            headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if has_key else {})
            connection.request("POST", "/v1/chat/completions", '{"messages": [{"role": "user"}]}', headers)
            answer = connection.getresponse()
            return f"{answer.status} {answer.read().decode()}"
        except OSError as error:
            return f"lost: {error!r}"
        finally:
            connection.close()

    def ask_on():
        number = 0
        while not (number and ended.wait(pause)):
            number += 1
            has_key = bool(number % 10)
            answer = ask(has_key)
            with lock:
                answers[f"{'with' if has_key else 'without'} key: {answer}"] += 1

    threads = [threading.Thread(target=ask_on) for _ in range(clients)]
    [thread.start() for thread in threads]
    sys.stdin.read()
    ended.set()
    [thread.join() for thread in threads]
    print(json.dumps(answers))
"""
"""A client that asks until its input ends, with a connection for each request, each tenth without the key."""

CLIENT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "client", "namespace": CLIENTS},
    "spec": {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "client",
                "image": RAY.reference,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "infinity"],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}


def service(version: str, level: str = "1") -> dict[str, Any]:
    """The service, on a RayCluster of only a head, with a version in its Serve config and a variable in its pods."""
    model = pods_cluster()
    head = {**model["head"], "rayStartParams": {**model["head"]["rayStartParams"], "num-cpus": "1"}}
    return {
        "name": NAME,
        "waitFor": "ready",
        "waitTimeout": "15m",
        "rayClusterDeletionDelaySeconds": 5,
        "apiKey": {"name": "chat-key", "key": "key"},
        "serveConfigV2": {"applications": [{"name": NAME, "import_path": "chat:build", "args": {"version": version}}]},
        "cluster": {
            **{key: model[key] for key in ("rayVersion", "image")},
            "autoscaling": False,
            "env": {"PYTHONPATH": "/code", "LEVEL": level},
            "volumes": [{"name": "code", "configMap": {"name": "chat-code"}}],
            "volumeMounts": [{"name": "code", "mountPath": "/code"}],
            "head": head,
        },
    }


def prepare(platform: Platform, node: str = "real-0") -> None:
    """Creates what the service needs beside the stack, and the client on a node. The tenant has to have the clients'
    namespace in `network.serveFrom`."""
    code = {"chat.py": textwrap.dedent(CODE)}
    beside = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "chat-code"}, "data": code},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "chat-key"}, "stringData": {"key": KEY}},
    ]
    platform.kubectl("apply", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump_all(beside))
    platform.create_namespace(CLIENTS)
    client = {**CLIENT, "spec": {**CLIENT["spec"], "nodeSelector": {"kubernetes.io/hostname": node}}}
    platform.kubectl("create", "-f", "-", given=yaml.safe_dump(client))


@dataclass
class Answers:
    """Fields: `served`: the number of answers of each version; `refused`: of requests that were refused for the lack of
    a key; `others`: of all other answers and lost requests, by what they are."""

    served: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    others: dict[str, int] = field(default_factory=dict)


@contextmanager
def asked(platform: Platform, clients: int = 4) -> Iterator[Answers]:
    """So many clients ask while the block runs, each at least once; then the answers are counted."""
    path = "jsonpath={.spec.clusterIP}"
    address = platform.kubectl("get", "service", "-n", NAMESPACE, f"{NAME}-serve-svc", "-o", path)
    client = platform.start_in("client", "client", ASK, address, KEY, "0.05", str(clients), namespace=CLIENTS)
    answers = Answers()
    try:
        yield answers
    finally:
        output, _ = client.communicate(timeout=300)
    answers.others = json.loads(output)
    answers.refused = answers.others.pop(f"without key: 401 {REFUSED.decode()}", 0)
    for version in "123":
        if count := answers.others.pop(f'with key: 200 {{"version":"{version}"}}', 0):
            answers.served[version] = count
