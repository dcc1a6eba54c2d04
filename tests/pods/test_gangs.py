"""Two RayClusters that do not fit at the same time: one runs completely, the other uses nothing until then."""

import copy
import json
from typing import Any

import pytest

from core.nodes import GPU_RESOURCE
from testbed.pods.node import is_ready
from testbed.pods.platform import CLUSTER, GANGS, NAMESPACE, Platform
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

GPUS = 5
"""Of the node's eight, for the only worker of each."""

NODES = """
import ray
ray.init(logging_level="error")
print("alive", len([node for node in ray.nodes() if node["Alive"]]), "GPUs", ray.cluster_resources()["GPU"])
"""


def test_one_of_two_gangs_runs_and_the_other_uses_nothing_until_it_ends(platform: Platform, steps: Steps) -> None:
    until(lambda: not platform.workers(), "no worker holds GPUs")
    first, second = GANGS
    with steps.step("a gang runs"):
        _start(platform, first)
        until(lambda: _ready(platform, first) == 2, "head and worker are ready")
    _start(platform, second)
    until(lambda: "NotEnoughResources" in _status(platform, second), "Volcano reports why the second waits")
    assert not [name for name, pod in _pods(platform, second).items() if "nodeName" in pod["spec"]]
    with steps.step("the first ends, and the second runs"):
        _delete(platform, first)
        until(lambda: _ready(platform, second) == 2, "head and worker are ready")
    assert f"alive 2 GPUs {GPUS}.0" in platform.in_head("python", "-c", NODES, cluster=second)
    _delete(platform, second)


def _start(platform: Platform, name: str) -> None:
    """A RayCluster like the stack's, whose one worker belongs to its gang."""
    like = json.loads(platform.kubectl("get", "raycluster", "-n", NAMESPACE, CLUSTER, "-o", "json"))
    spec: dict[str, Any] = copy.deepcopy(like["spec"])
    group = spec["workerGroupSpecs"][0] | {"groupName": "five", "replicas": 1, "minReplicas": 1, "maxReplicas": 1}
    group.pop("scaleStrategy", None)
    amounts = group["template"]["spec"]["containers"][0]["resources"]
    for each in amounts.values():
        each[GPU_RESOURCE] = str(GPUS)
    group["rayStartParams"]["num-gpus"] = str(GPUS)
    spec |= {"enableInTreeAutoscaling": False, "workerGroupSpecs": [group]}
    labels = {key: value for key, value in like["metadata"]["labels"].items() if key != "ray.io/cluster"}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    body = {"apiVersion": like["apiVersion"], "kind": like["kind"], "metadata": metadata, "spec": spec}
    platform.kubectl("create", "-f", "-", given=json.dumps(body))


def _delete(platform: Platform, name: str) -> None:
    platform.kubectl("delete", "raycluster", "-n", NAMESPACE, name)


def _pods(platform: Platform, name: str) -> dict[str, Any]:
    return platform.pods(f"ray.io/cluster={name}", NAMESPACE)


def _ready(platform: Platform, name: str) -> int:
    return len([pod for pod in _pods(platform, name).values() if is_ready(pod)])


def _status(platform: Platform, name: str) -> str:
    """The status that Volcano reports for a gang."""
    group = json.loads(platform.kubectl("get", "podgroup", "-n", NAMESPACE, f"ray-{name}-pg", "-o", "json"))
    return json.dumps(group.get("status", {}))
