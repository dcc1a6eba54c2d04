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
    import collections, http.client, json, re, sys, threading
    address, key, question, pattern, timeout, clients = sys.argv[1:]
    answers, lock, ended = collections.Counter(), threading.Lock(), threading.Event()

    def ask(has_key):
        connection = http.client.HTTPConnection(address, 8000, timeout=int(timeout))
        try:
            headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if has_key else {})
            connection.request("POST", "/v1/chat/completions", question, headers)
            answer = connection.getresponse()
            body = answer.read().decode()
            served = re.fullmatch(pattern, body, re.DOTALL) if answer.status == 200 else None
            return f"served {served[1]}" if served else f"{answer.status} {body}"
        except OSError as error:
            return f"lost: {error!r}"
        finally:
            connection.close()

    def ask_on():
        number = 0
        while not (number and ended.wait(0.05)):
            number += 1
            has_key = bool(number % 10)
            answer = ask(has_key)
            with lock:
                answers[f"{'with' if has_key else 'without'} key: {answer}"] += 1

    threads = [threading.Thread(target=ask_on) for _ in range(int(clients))]
    [thread.start() for thread in threads]
    sys.stdin.read()
    ended.set()
    [thread.join() for thread in threads]
    print(json.dumps(answers))
"""
"""A client that asks until its input ends, with a connection for each request, each tenth without the key."""


def client(image: str, node: str) -> dict[str, Any]:
    """A pod with Python, from which clients ask."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "client", "namespace": CLIENTS},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "client",
                    "image": image,
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
    """Creates what the service needs beside the stack, and the client on a node."""
    code = {"chat.py": textwrap.dedent(CODE)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "chat-code"}, "data": code}
    platform.kubectl("apply", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump(body))
    prepare_clients(platform, RAY.reference, node)


def prepare_clients(platform: Platform, image: str, node: str = "real-0") -> None:
    """Creates the Secret with the key, and the client on a node. The tenant has to have the clients' namespace in
    `network.serveFrom`."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "chat-key"}, "stringData": {"key": KEY}}
    platform.kubectl("apply", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump(secret))
    platform.create_namespace(CLIENTS)
    platform.kubectl("create", "-f", "-", given=yaml.safe_dump(client(image, node)))


@dataclass
class Answers:
    """Fields: `served`: the number of whole answers, by what the pattern's group has; `refused`: of requests that were
    refused for the lack of a key; `others`: of all other answers and lost requests, by what they are."""

    served: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    others: dict[str, int] = field(default_factory=dict)


@contextmanager
def asked(
    platform: Platform,
    clients: int = 4,
    service: str = NAME,
    question: str = '{"messages": [{"role": "user"}]}',
    pattern: str = '{"version":"([123])"}',
    timeout: int = 30,
) -> Iterator[Answers]:
    """So many clients ask while the block runs, each at least once; then the answers are counted. `pattern`: of a whole
    answer; `timeout`: seconds for each."""
    path = "jsonpath={.spec.clusterIP}"
    address = platform.kubectl("get", "service", "-n", NAMESPACE, f"{service}-serve-svc", "-o", path)
    arguments = (address, KEY, question, pattern, str(timeout), str(clients))
    client = platform.start_in("client", "client", ASK, *arguments, namespace=CLIENTS)
    answers = Answers()
    try:
        yield answers
    finally:
        output, _ = client.communicate(timeout=300)
    answers.others = json.loads(output)
    answers.refused = answers.others.pop(f"without key: 401 {REFUSED.decode()}", 0)
    whole = "with key: served "
    for answer in [each for each in answers.others if each.startswith(whole)]:
        answers.served[answer.removeprefix(whole)] = answers.others.pop(answer)
