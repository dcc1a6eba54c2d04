"""A check of a stack file with a thousand clusters takes a second or two, so each rule must be fast."""

import time

from kuberay import OperatorContext, validate
from tests.unit.kuberay.manifests import edited, manifest

BUDGET = 0.7e-3
"""Seconds for a RayCluster of four worker groups; 0.2 ms on a machine of two cores."""


def test_a_ray_cluster_of_four_worker_groups_is_judged_within_the_budget() -> None:
    pod = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": "ray",
            "nodeSelector": {"pool": "a100"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "ray-worker",
                    "image": "rayproject/ray:2.60.0",
                    "env": [{"name": name, "value": "1"} for name in ("A", "B", "C", "D")],
                    "resources": {"limits": {"cpu": "8", "memory": "64Gi"}, "requests": {"cpu": "8", "memory": "64Gi"}},
                }
            ],
        },
    }
    groups = {
        f"spec workerGroupSpecs {number}": {
            "groupName": f"a100-{number}", "maxReplicas": 4, "rayStartParams": {"num-gpus": "1"}, "template": pod
        }
        for number in range(4)
    }  # fmt: skip
    body, operator = edited(manifest("RayCluster"), groups), OperatorContext()
    assert validate(body, operator) == []
    assert min(_seconds(body, operator) for _ in range(100)) < BUDGET


def _seconds(body: dict[str, object], operator: OperatorContext) -> float:
    start = time.perf_counter()
    validate(body, operator)
    return time.perf_counter() - start
