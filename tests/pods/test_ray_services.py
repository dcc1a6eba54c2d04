"""A RayService of the stack on real pods, in a namespace at level restricted: it answers during updates."""

import json
import textwrap
from typing import Any

import pytest
import yaml

from components.ray_service.require_key import REFUSED as REFUSED_BY_PROXY
from components.ray_service.settings import SERVICE_LABEL
from local.images.ray import RAY
from testbed.pods.platform import NAMESPACE, Platform, pods_cluster
from testbed.pods.steps import Steps, until
from testbed.serve_configs import ACCEPTED, REFUSED

pytestmark = [pytest.mark.pods, pytest.mark.timeout(400, func_only=True)]

NAME, CLIENTS, KEY = "chat", "clients", "not-a-secret-of-anybody"

REQUESTS = 1000

CODE = """
    from ray import serve

    @serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1})
    class Chat:
        def __init__(self, version):
            self.version = version

        async def __call__(self, request):
            return {"version": self.version}

    def build(args):
        if not args["version"]:
            raise ValueError("the version is not set")
        return Chat.bind(args["version"])
"""
"""The application: it names its version, and asks for no key."""

ASK = """
    import collections, http.client, json, sys, threading
    address, key, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
    answers, lock, ended = collections.Counter(), threading.Lock(), threading.Event()

    def ask(has_key):
        connection = http.client.HTTPConnection(address, 8000, timeout=30)
        try:
            connection.request("GET", "/", headers={"Authorization": f"Bearer {key}"} if has_key else {})
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

    threads = [threading.Thread(target=ask_on) for _ in range(4)]
    [thread.start() for thread in threads]
    sys.stdin.read()
    ended.set()
    [thread.join() for thread in threads]
    print(json.dumps(answers))
"""
"""A client that asks until its input ends, with a connection for each request, each tenth without the key."""

JUDGE = """
    import json, sys
    from ray.serve.schema import ServeDeploySchema
    refused = []
    for name, config in json.load(sys.stdin).items():
        try:
            ServeDeploySchema.model_validate(config)
        except ValueError:
            refused.append(name)
    print(json.dumps(refused))
"""


def service(version: str, level: str = "1") -> dict[str, Any]:
    """The service, with a version in its Serve config and a variable in its pods."""
    model = pods_cluster()
    head = {**model["head"], "rayStartParams": {**model["head"]["rayStartParams"], "num-cpus": "1"}}
    return {
        "name": NAME,
        "waitFor": "ready",
        "waitTimeout": "4m",
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


def serve(platform: Platform, *, fails: bool = False, **versions: str) -> str:
    """Another version of the service, instead of the jobs of other files. Returns the output of `up`."""

    def edit(settings: dict[str, Any]) -> None:
        (tenant,) = settings["tenants"]
        tenant |= {
            "jobs": [],
            "jobTemplates": [],
            "services": [service(**versions)],
            "network": {"serveFrom": [CLIENTS]},
        }

    platform.stack.edit(edit)
    return platform.stack.pulumi("up", "--yes", "--skip-preview", fails=fails).output


CLIENT = {
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


@pytest.fixture(scope="module")
def platform(without_clusters: Platform, steps: Steps) -> Platform:
    """The stack with the service, and a client in another namespace; `up` ends when the service answers."""
    given = without_clusters
    code = {"chat.py": textwrap.dedent(CODE)}
    beside = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "chat-code"}, "data": code},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "chat-key"}, "stringData": {"key": KEY}},
    ]
    given.kubectl("apply", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump_all(beside))
    given.create_namespace(CLIENTS)
    given.kubectl("create", "-f", "-", given=yaml.safe_dump(CLIENT))
    with steps.step("`pulumi up` of a service, until it answers"):
        serve(given, version="1")
    return given


def status(platform: Platform) -> dict[str, Any]:
    body = json.loads(platform.kubectl("get", "rayservice", "-n", NAMESPACE, NAME, "-o", "json"))
    found: dict[str, Any] = body.get("status", {})
    return found


def active(platform: Platform) -> str:
    return str(status(platform)["activeServiceStatus"]["rayClusterName"])


def clusters(platform: Platform) -> list[str]:
    found = platform.kubectl("get", "rayclusters", "-n", NAMESPACE, "-l", f"{SERVICE_LABEL}={NAME}", "-o", "name")
    return [name.partition("/")[2] for name in found.split()]


def address(platform: Platform) -> str:
    path = "jsonpath={.spec.clusterIP}"
    return platform.kubectl("get", "service", "-n", NAMESPACE, f"{NAME}-serve-svc", "-o", path)


def test_requests_are_lost_neither_with_another_config_nor_with_another_cluster(
    platform: Platform, steps: Steps
) -> None:
    first = active(platform)
    arguments = (ASK, address(platform), KEY, "0.05")
    asking = platform.start_in("client", "client", *arguments, namespace=CLIENTS)
    try:
        with steps.step("`pulumi up` of another Serve config, until it is served"):
            serve(platform, version="2")
        assert active(platform) == first
        with steps.step("`pulumi up` of another RayCluster, until it serves"):
            serve(platform, version="3", level="2")
        assert active(platform) != first
        until(lambda: clusters(platform) == [active(platform)], "the first RayCluster is gone")
    finally:
        output, _ = asking.communicate(timeout=60)
    answers = json.loads(output)
    served = {version: answers.pop(f'with key: 200 {{"version":"{version}"}}', 0) for version in "123"}
    refused = answers.pop(f"without key: 401 {REFUSED_BY_PROXY.decode()}", 0)
    assert answers == {}, "each request gets the answer of a version, or is refused without the key"
    assert all(served.values())
    assert sum(served.values()) + refused >= REQUESTS


def test_a_version_that_fails_is_reported_and_the_one_before_answers(platform: Platform, steps: Steps) -> None:
    with steps.step("`pulumi up` of a Serve config that fails"):
        output = serve(platform, fails=True, version="", level="2")
    assert f"RayService {NAMESPACE}/{NAME} has failed, and it still serves the version before" in output
    assert "the version is not set" in output
    asking = platform.start_in("client", "client", ASK, address(platform), KEY, "0.05", namespace=CLIENTS)
    answers = json.loads(asking.communicate(timeout=60)[0])
    assert 'with key: 200 {"version":"3"}' in answers


def test_ray_judges_serve_configs_as_check_does(platform: Platform) -> None:
    (head,) = platform.pods(f"{SERVICE_LABEL}={NAME},ray.io/node-type=head", NAMESPACE)
    judging = platform.start_in(head, "ray-head", JUDGE)
    output, _ = judging.communicate(json.dumps({**ACCEPTED, **REFUSED}), timeout=60)
    assert sorted(json.loads(output.splitlines()[-1])) == sorted(REFUSED)
