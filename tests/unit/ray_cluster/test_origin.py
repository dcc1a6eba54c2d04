"""The stack file paths of problems in the rendered RayCluster."""

from collections.abc import Iterator
from typing import Any

import pytest

from components.ray_cluster import origin
from components.ray_cluster.manifests import cluster_spec, ray_cluster
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from core.nodes import NodePool

POOLS = (
    NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB"),
    NodePool(pool="heads", count=2, cpu="32", memory="128Gi", labels={"role": "heads"}),
)

ENTRY: dict[str, Any] = {
    "name": "training",
    "rayVersion": "2.60.0",
    "image": "ours/ray:2.60.0",
    "imagePullSecrets": ["mirror"],
    "head": {
        "serviceType": "NodePort",
        "cpu": "3",
        "memory": "17Gi",
        "pool": "heads",
        "image": "ours/head:2.60.0",
        "env": {"HEAD_ONLY": "head-env"},
        "rayStartParams": {"object-store-memory": "1000000000"},
        "labels": {"zone": "head-zone"},
        "podTemplate": {
            "spec": {
                "priorityClassName": "head-priority",
                "containers": [
                    {"name": "sidecar", "image": "side:car"},
                    {"name": "ray-head", "env": [{"name": "FROM_TEMPLATE", "value": "template-env"}]},
                ],
            }
        },
    },
    "workers": [
        {
            "pool": "a100",
            "env": {"WORKER_ONLY": "worker-env"},
            "rayStartParams": {"node-name": "worker-name"},
            "variants": [
                {"gpus": 1},
                {"gpus": 8, "cpu": "59", "maxReplicas": 3, "podTemplate": {"spec": {"nodeName": "node-8"}}},
            ],
            "podTemplate": {"spec": {"priorityClassName": "worker-priority"}},
        }
    ],
    "workerGroups": [
        {
            "groupName": "configured",
            "maxReplicas": 7,
            "replicas": 6,
            "numOfHosts": 2,
            "cpu": "5",
            "memory": "18Gi",
            "gpus": 4,
            "image": "ours/group:2.60.0",
            "env": {"GROUP_ONLY": "group-env"},
            "rayStartParams": {"temp-dir": "/group"},
            "labels": {"zone": "group-zone"},
            "idleTimeout": "77s",
            "podTemplate": {"spec": {"tolerations": [{"key": "group-key", "operator": "Exists"}]}},
        }
    ],
    "autoScalingMode": "conservative",
    "idleTimeout": "88s",
    "serviceAccount": "account",
    "authOptions": {"mode": "token", "secretName": "auth-secret"},
    "env": {"ALL": "all-env"},
    "labels": {"owner": "owner-label"},
    "annotations": {"contact": "contact-annotation"},
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}],
    "volumeMounts": [{"name": "data", "mountPath": "/mount"}],
    "overrides": {
        "headServiceAnnotations": {"a": "service-annotation"},
        "workerGroupSpecs": [
            {"groupName": "added", "template": {"spec": {"containers": [{"name": "w", "image": "added:image"}]}}},
            {"groupName": "a100-8gpu", "scaleStrategy": {"workersToDelete": ["victim"]}},
        ],
    },
}

SETTINGS = valid(ENTRY)
BODY = ray_cluster(SETTINGS, POOLS)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for key, item in items:
            yield from leaves(item, (*path, key))


def setting_at(settings: RayClusterSettings, pools: tuple[NodePool, ...], path: tuple[Any, ...]) -> tuple[Any, ...]:
    return origin.setting_at(settings, pools, cluster_spec(settings, pools), path)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


PATHS_BY_VALUE = {value: path for path, value in leaves(ENTRY)}
"""The paths of the entry by value, for values that occur once."""

ONCE = [
    (path, value)
    for path, value in leaves(BODY)
    if isinstance(value, str) and value in PATHS_BY_VALUE and [each for _, each in leaves(ENTRY)].count(value) == 1
]


@pytest.mark.parametrize(("path", "value"), ONCE, ids=[".".join(map(str, path)) for path, _ in ONCE])
def test_a_value_that_is_set_once_is_found_at_its_setting(path: tuple[Any, ...], value: str) -> None:
    assert setting_at(SETTINGS, POOLS, path) == PATHS_BY_VALUE[value]


def test_the_example_sets_most_settings() -> None:
    assert len({value for _, value in ONCE}) > 30


def test_every_part_of_the_body_comes_from_a_setting() -> None:
    for path, _ in leaves(BODY):
        at(ENTRY, setting_at(SETTINGS, POOLS, path))


GROUPS = {group["groupName"]: index for index, group in enumerate(BODY["spec"]["workerGroupSpecs"])}


@pytest.mark.parametrize(
    ("group", "field", "setting"),
    [
        ("a100-1gpu", "maxReplicas", ("workers", 0, "variants", 0)),
        ("a100-1gpu", "groupName", ("workers", 0, "variants", 0)),
        ("a100-8gpu", "maxReplicas", ("workers", 0, "variants", 1, "maxReplicas")),
        ("configured", "replicas", ("workerGroups", 0, "replicas")),
        ("configured", "minReplicas", ("workerGroups", 0)),
        ("configured", "numOfHosts", ("workerGroups", 0, "numOfHosts")),
        ("configured", "idleTimeoutSeconds", ("workerGroups", 0, "idleTimeout")),
        ("added", "minReplicas", ("overrides", "workerGroupSpecs", 0)),
    ],
)
def test_amounts_of_a_group_are_found_at_the_settings_that_they_are_derived_from(
    group: str, field: str, setting: Any
) -> None:
    assert setting_at(SETTINGS, POOLS, ("spec", "workerGroupSpecs", GROUPS[group], field)) == setting


@pytest.mark.parametrize(
    ("configured", "path", "found"),
    [
        ({"idleTimeoutMinutes": 5}, ("autoscalerOptions", "idleTimeoutSeconds"), ("idleTimeoutMinutes",)),
        ({"targetUtilization": 80}, ("autoscalerOptions", "upscalingMode"), ("targetUtilization",)),
        ({"autoscaling": False}, ("enableInTreeAutoscaling",), ("autoscaling",)),
        ({"minWorkers": 1}, ("workerGroupSpecs", 0, "minReplicas"), ("minWorkers",)),
        ({}, ("autoscalerOptions", "version"), ()),
        ({"overrides": {"headGroupSpec": None}}, ("headGroupSpec", "template"), ("overrides", "headGroupSpec")),
        (
            {"overrides": {"headGroupSpec": {"template": "text"}}},
            ("headGroupSpec", "template", "spec"),
            ("overrides", "headGroupSpec", "template"),
        ),
        ({"overrides": {"autoscalerOptions": None}}, ("autoscalerOptions",), ("overrides", "autoscalerOptions")),
        (
            {"overrides": {"workerGroupSpecs": [{"$patch": "replace"}, {"groupName": "g", "maxReplicas": -1}]}},
            ("workerGroupSpecs", 0, "maxReplicas"),
            ("overrides", "workerGroupSpecs", 1, "maxReplicas"),
        ),
        (
            {"head": {"podTemplate": {"spec": {"hostNetwork": "yes"}}}},
            ("headGroupSpec", "template", "spec", "hostNetwork"),
            ("head", "podTemplate", "spec", "hostNetwork"),
        ),
        (
            {"head": {"podTemplate": {"spec": {"tolerations": [{"key": "a"}, {"kay": "b"}]}}}},
            ("headGroupSpec", "template", "spec", "tolerations", 1, "kay"),
            ("head", "podTemplate", "spec", "tolerations", 1, "kay"),
        ),
    ],
)
def test_a_derived_field_is_found_at_its_setting(configured: Any, path: Any, found: Any) -> None:
    entry = {
        "name": "a",
        "rayVersion": "2.60.0",
        "image": "ray:2.60.0",
        "workerGroups": [{"groupName": "w"}],
        **configured,
    }
    assert setting_at(valid(entry), (), ("spec", *path)) == found


def test_the_name_of_a_cluster_is_found_at_its_setting() -> None:
    assert setting_at(SETTINGS, POOLS, ("metadata", "name")) == ("name",)
    assert setting_at(SETTINGS, POOLS, ("kind",)) == ()


@pytest.mark.parametrize("end", ["unknown", 99, "0", -1])
def test_an_unknown_path_is_followed_as_far_as_possible(end: Any) -> None:
    for path, _ in leaves(BODY):
        for length in range(1, len(path) + 1):
            at(ENTRY, setting_at(SETTINGS, POOLS, (*path[:length], end)))
