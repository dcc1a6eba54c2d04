"""Running RayClusters are adopted by a stack, and nothing happens to them."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest

from local import paths
from local.rehearsal import Rehearsal
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays, Stack
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

NAMESPACE = "research"

IMAGE = "rayproject/ray:2.60.0"


def group(name: str, **more: Any) -> dict[str, Any]:
    container = {"name": "ray-worker", "image": IMAGE, "resources": {"limits": {"cpu": 1, "memory": "2G"}}}
    return {
        "groupName": name,
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 5,
        "rayStartParams": {},
        "template": {"spec": {"containers": [container]}},
        **more,
    }


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    """A RayCluster like KubeRay's samples; the API server adds its defaults."""
    head = {
        "name": "ray-head",
        "image": IMAGE,
        "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "500m", "memory": "2Gi"}},
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token", "optional": True}}}],
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}},
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"owner": "ada"}, "annotations": {"cost": "7"}},
        "spec": {
            "rayVersion": "2.60.0",
            "headGroupSpec": {
                "serviceType": "ClusterIP",
                "rayStartParams": {"num-cpus": "0"},
                "template": {"metadata": {"labels": {"tier": "head"}}, "spec": {"containers": [head]}},
            },
            "workerGroupSpecs": [group("small"), group("large", replicas=2)],
            **spec,
        },
    }


@dataclass(frozen=True)
class Running:
    """The properties of a RayCluster that adoption must not change."""

    uid: str
    generation: int
    spec: dict[str, Any]
    pods: dict[str, str]
    """Unique ids by name."""


class Research:
    """A namespace whose RayClusters were created with kubectl before the stack."""

    def __init__(self, cluster: Rehearsal, rays: Rays) -> None:
        self.kubectl = Kubectl(cluster).does
        self._rays = rays

    def apply(self, body: dict[str, Any]) -> None:
        self.kubectl("apply", "--filename=-", bodies=[body])

    def running(self, name: str) -> Running:
        body = self._rays.read(NAMESPACE, name)
        pods = json.loads(
            self.kubectl(
                "get", "pods", f"--namespace={NAMESPACE}", f"--selector=ray.io/cluster={name}", "--output=json"
            )
        )["items"]
        return Running(
            uid=body["metadata"]["uid"],
            generation=body["metadata"]["generation"],
            spec=body["spec"],
            pods={pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods},
        )

    def until_ready(self, name: str, workers: int) -> None:
        deadline = time.monotonic() + 300
        while (status := self._rays.read(NAMESPACE, name).get("status") or {}).get("readyWorkerReplicas") != workers:
            assert time.monotonic() < deadline, f"RayCluster {name} is not ready: {status}"
            time.sleep(0.5)

    def scale(self, name: str, replicas: int) -> None:
        """Like Ray's autoscaler, with its field manager."""
        patch = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": replicas}]
        self.kubectl(
            "patch", "raycluster", name, f"--namespace={NAMESPACE}", "--type=json", f"--patch={json.dumps(patch)}",
            "--field-manager=python-requests",
        )  # fmt: skip


def adopt(stack: Stack, name: str, *more: str, fails: bool = False) -> str:
    """`ray-platform adopt` for one of the namespace's RayClusters; returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", "stacks", "adopt", str(stack.file), f"{NAMESPACE}/{name}", *more],
        env=stack.environment,
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def teams(settings: dict[str, Any]) -> None:
    """A stack without tenants and priorities."""
    del settings["tenants"], settings["priorityClasses"]


def edited(settings: dict[str, Any]) -> None:
    tenant = settings["tenants"][0]
    tenant["allowDelete"] = True
    tenant["clusters"][0]["workerGroups"][0].update(maxReplicas=7)


def test_clusters_of_kubectl_are_adopted_without_an_effect_on_their_pods(
    stack_on_operator: MakeStack, rays: Rays, cluster: Rehearsal
) -> None:
    team = stack_on_operator("team")
    research = Research(cluster, rays)
    research.kubectl("create", "namespace", NAMESPACE)
    research.apply(manifest("fixed"))
    research.apply(
        manifest("scaled", enableInTreeAutoscaling=True, autoscalerOptions={"version": "v2", "idleTimeoutSeconds": 60})
    )
    research.until_ready("fixed", workers=3)
    research.until_ready("scaled", workers=3)
    research.scale("scaled", 3)
    research.until_ready("scaled", workers=5)
    before = {name: research.running(name) for name in ("fixed", "scaled")}

    team.edit(teams)
    assert "RayClusters there: fixed, scaled" in adopt(team, "absent", fails=True)
    assert "+        - name: fixed" in adopt(team, "fixed")
    assert "fixed" not in team.file.read_text()
    for name in before:
        adopt(team, name, "--write")
    assert "already: there is nothing to adopt" in adopt(team, "fixed", fails=True)
    assert {name: research.running(name) for name in before} == before

    team.edit(lambda settings: None)
    assert "2 to import" in team.pulumi("preview").output
    team.up()
    assert {name: research.running(name) for name in before} == before
    team.changes_nothing(refreshed=True)

    team.edit(lambda settings: settings["tenants"][0]["clusters"][0].pop("adopt"))
    team.changes_nothing()
    team.edit(edited)
    team.up()
    after = research.running("fixed")
    assert after.spec["workerGroupSpecs"][0]["maxReplicas"] == 7
    assert after.pods == before["fixed"].pods
    assert research.running("scaled") == before["scaled"]

    team.destroy()
    assert not rays.exists(NAMESPACE, "fixed")
    assert research.kubectl("get", "namespace", NAMESPACE, "--output=jsonpath={.status.phase}") == "Active"
    research.kubectl("delete", "namespace", NAMESPACE)
