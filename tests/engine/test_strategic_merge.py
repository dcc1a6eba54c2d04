"""User settings are merged like by `kubectl patch`, except for the position of new items."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from core.strategic_merge import merge
from local.tools import KUBERNETES

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "1"}},
    "spec": {
        "restartPolicy": "Never",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "x"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a"]}],
        "topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
        "containers": [
            {
                "name": "a",
                "image": "i:1",
                "args": ["1", "2"],
                "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
                "ports": [{"containerPort": 1, "name": "one"}],
                "volumeMounts": [{"name": "v", "mountPath": "/a"}],
                "resources": {"limits": {"cpu": "1"}},
            },
            {"name": "b", "image": "j"},
        ],
    },
}


def first_container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "a", **fields}]}}


PATCHES: list[dict[str, Any]] = [
    first_container(image="i:2"),
    first_container(args=["9"]),
    first_container(args=None, resources=None),
    first_container(env=[{"name": "X", "$patch": "delete"}, {"name": "Z", "value": "3"}]),
    first_container(env=[{"$patch": "replace"}]),
    first_container(env=[{"$patch": "replace"}, {"name": "Z", "value": "3"}]),
    first_container(env=[{"name": "X", "value": None, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]),
    first_container(ports=[{"containerPort": 1, "name": "uno"}, {"containerPort": 2}]),
    first_container(volumeMounts=[{"mountPath": "/a", "name": "w"}, {"mountPath": "/b", "name": "v"}]),
    first_container(volumeDevices=[{"devicePath": "/dev/x", "name": "v"}]),
    {"spec": {"containers": [{"name": "c", "image": "c"}, {"name": "b", "$patch": "delete"}]}},
    {"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "z"}]}},
    {"spec": {"tolerations": [{"key": "y"}]}},
    {"spec": {"tolerations": []}},
    {"spec": {"volumes": [{"name": "w", "emptyDir": {}}]}},
    {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}},
    {"spec": {"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["b"]}, {"ip": "2.2.2.2"}]}},
    {"spec": {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 2}]}},
    {"spec": {"nodeSelector": {"$patch": "replace", "c": "d"}}},
    {"spec": {"nodeSelector": {"$patch": "delete"}}},
    {"spec": {"nodeSelector": None, "priorityClassName": "x"}},
    {"spec": {"imagePullSecrets": [{"name": "s"}], "schedulingGates": [{"name": "g"}]}},
    {"spec": {"initContainers": [{"name": "i", "image": "i", "env": [{"name": "A", "value": "b"}]}]}},
    {"spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "claim"}]}},
    {"metadata": {"labels": {"a": None, "b": "2"}, "annotations": {"x": "y"}}},
]


@pytest.mark.parametrize("patch", PATCHES, ids=json.dumps)
def test_a_pod_is_patched_like_by_kubectl(patch: dict[str, Any], tmp_path: Path) -> None:
    kubectl = [
        str(KUBERNETES.program("kubectl")),
        "patch",
        "--local",
        "--type=strategic",
        "--filename=-",
        "--output=json",
    ]
    patched = subprocess.run(
        [*kubectl, "--patch", json.dumps(patch)],
        input=json.dumps(POD),
        capture_output=True,
        text=True,
        check=True,
        env={"KUBECONFIG": os.devnull, "HOME": str(tmp_path)},  # without HOME it creates .kube in this folder
    )
    assert comparable(merge(POD, patch)) == comparable(json.loads(patched.stdout))


def comparable(value: Any) -> Any:
    """Removes empty values, which kubectl omits, and sorts lists, because kubectl puts new items first."""
    if isinstance(value, dict):
        parts = {key: comparable(item) for key, item in value.items() if key != "status"}
        return {key: item for key, item in parts.items() if item not in ({}, [], None)}
    return sorted(map(comparable, value), key=in_order) if isinstance(value, list) else value


def in_order(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
