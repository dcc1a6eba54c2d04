"""A RayCluster as the API server returns it."""

import copy
import json
from typing import Any

IMAGE = "rayproject/ray:2.60.0"


def live(**metadata: Any) -> dict[str, Any]:
    """A RayCluster created by `kubectl apply`, with the additions of the API server and the operator."""
    return copy.deepcopy({**_LIVE, "metadata": {**_LIVE["metadata"], **metadata}})


def _group(name: str, replicas: int) -> dict[str, Any]:
    return {
        "groupName": name,
        "maxReplicas": 5,
        "minReplicas": 0,
        "numOfHosts": 1,
        "rayStartParams": {},
        "replicas": replicas,
        "template": {
            "spec": {
                "containers": [
                    {
                        "image": IMAGE,
                        "name": "ray-worker",
                        "resources": {"limits": {"cpu": 1, "memory": "2G"}, "requests": {"cpu": "500m"}},
                        "volumeMounts": [{"mountPath": "/tmp/ray", "name": "logs"}],  # noqa: S108 (in a pod)
                    }
                ],
                "volumes": [{"emptyDir": {}, "name": "logs"}],
            }
        },
    }


_LIVE: dict[str, Any] = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {
        "name": "training",
        "namespace": "research",
        "uid": "3c1f",
        "generation": 3,
        "resourceVersion": "814",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl-client-side-apply", "operation": "Update"}],
        "labels": {"owner": "ada"},
        "annotations": {
            "cost-centre": "7",
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"kind": "RayCluster"}),
        },
    },
    "spec": {
        "rayVersion": "2.60.0",
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0"},
            "serviceType": "ClusterIP",
            "template": {
                "metadata": {"labels": {"tier": "head"}},
                "spec": {
                    "containers": [
                        {
                            "image": IMAGE,
                            "name": "ray-head",
                            "resources": {
                                "limits": {"cpu": "1", "memory": "2Gi"},
                                "requests": {"cpu": "500m", "memory": "2Gi"},
                            },
                        }
                    ]
                },
            },
        },
        "workerGroupSpecs": [_group("small", 1), _group("large", 2)],
    },
    "status": {"state": "ready"},
}
