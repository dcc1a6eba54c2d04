"""The image of Redis runs like Redis' own image, so that the same stack file works on the real node."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from local.images import REDIS
from testbed.pods.node import Node, is_ready
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(180, func_only=True)]

IMAGE = REDIS.reference.removeprefix("docker.io/library/")

SPACE = "redis"
"""A namespace without NetworkPolicies, in which Pod Security `restricted` is enforced."""

CONTEXTS = {
    "pod": {"runAsNonRoot": True, "runAsUser": 999, "fsGroup": 999, "seccompProfile": {"type": "RuntimeDefault"}},
    "container": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
"""The security contexts that this requires."""


class Redis:
    """A pod of Redis."""

    def __init__(self, node: Node, namespace: str, args: list[str], contexts: dict[str, Any]) -> None:
        self._node = node
        self._namespace = namespace
        self._body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "redis", "namespace": namespace, "labels": {"app": "redis"}},
            "spec": {
                "securityContext": contexts.get("pod", {}),
                "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": "data", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "redis",
                        "image": IMAGE,
                        "args": args,
                        "securityContext": contexts.get("container", {}),
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                        "readinessProbe": {"exec": {"command": ["redis-cli", "ping"]}, "periodSeconds": 1},
                    }
                ],
            },
        }

    def create(self) -> None:
        self._node.kubectl("create", "-f", "-", given=yaml.safe_dump(self._body))
        until(lambda: is_ready(self.pod()), "Redis is ready")

    def delete(self) -> None:
        self._node.kubectl("delete", "pod", "-n", self._namespace, "redis", "--ignore-not-found")

    def pod(self) -> dict[str, Any]:
        """The pod, from the API server."""
        found: dict[str, Any] = json.loads(
            self._node.kubectl("get", "pod", "-n", self._namespace, "redis", "-o", "json")
        )
        return found

    def restarts(self) -> int:
        (status,) = self.pod()["status"]["containerStatuses"]
        return int(status["restartCount"])

    def run(self, *command: str) -> str:
        """The output of a command in the container."""
        return self._node.kubectl("exec", "-n", self._namespace, "redis", "--", *command).strip()


@pytest.fixture(scope="module")
def space(node: Node) -> Iterator[str]:
    """The namespace, on a node that has the image."""
    node.rehearsal.placement.load([IMAGE])
    node.create_namespace(SPACE)
    yield SPACE
    node.kubectl("delete", "namespace", SPACE, "--wait=false")


@pytest.fixture
def restricted(node: Node, space: str) -> Iterator[Redis]:
    """A Redis where Pod Security is enforced."""
    yield from _made(Redis(node, space, ["--appendonly", "yes", "--appendfsync", "always"], CONTEXTS))


@pytest.fixture
def plain(node: Node, space: str) -> Iterator[Redis]:
    """A Redis without a security context."""
    yield from _made(Redis(node, "default", [], {}))


def _made(redis: Redis) -> Iterator[Redis]:
    try:
        redis.create()
        yield redis
    finally:
        redis.delete()


def test_under_pod_security_restricted_it_keeps_its_keys_over_a_restart(restricted: Redis, steps: Steps) -> None:
    assert restricted.run("redis-cli", "ping") == "PONG"
    restricted.run("redis-cli", "set", "colour", "green")
    with steps.step("Redis restarted, with its keys"):
        # Delayed, because a command ends with its container.
        restricted.run("sh", "-c", "(sleep 0.5; kill 1) > /dev/null 2>&1 &")
        until(lambda: restricted.restarts() == 1 and is_ready(restricted.pod()), "Redis is ready again")
    assert restricted.run("redis-cli", "get", "colour") == "green"


def test_it_drops_root_and_answers_other_pods(plain: Redis, restricted: Redis) -> None:
    assert plain.run("sh", "-c", "stat -c %U:%G /proc/1 /data").split() == ["redis:redis", "redis:root"]
    assert restricted.run("redis-cli", "-h", plain.pod()["status"]["podIP"], "ping") == "PONG"


def test_sentinel_watches_a_master(restricted: Redis) -> None:
    restricted.run("sh", "-c", "echo sentinel monitor main 127.0.0.1 6379 1 > sentinel.conf")
    restricted.run("redis-sentinel", "sentinel.conf", "--daemonize", "yes")
    until(lambda: restricted.run("redis-cli", "-p", "26379", "ping") == "PONG", "Sentinel answers")
    known = restricted.run("redis-cli", "-p", "26379", "sentinel", "get-master-addr-by-name", "main").split()
    assert known == ["127.0.0.1", "6379"]
