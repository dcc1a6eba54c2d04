"""What a user relies on when worker groups are derived from a node pool."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.pods import DRAIN_VARIABLE
from components.ray_cluster.settings import RayClusterSettings, Reserve, Variant, WorkersSettings
from components.ray_cluster.worker_groups import doubling, worker_groups
from core.nodes import NodePool
from core.quantities import amount

PRODUCT = "NVIDIA-A100-SXM4-80GB"
A100 = NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product=PRODUCT)
CPU = NodePool(pool="cpu", count=3, cpu="32", memory="128Gi")


def cluster(*workers: WorkersSettings, **more: Any) -> RayClusterSettings:
    return RayClusterSettings(
        name="training", ray_version="2.60.0", image="rayproject/ray:2.60.0", workers=workers, **more
    )


def groups_of(settings: RayClusterSettings, *pools: NodePool) -> dict[str, dict[str, Any]]:
    body = ray_cluster(settings, pools, "ray-deployer")
    return {group["groupName"]: group for group in body["spec"]["workerGroupSpecs"]}


def test_the_guides_example_for_four_nodes_of_eight_a100_results_field_by_field() -> None:
    guide = yaml.safe_load((Path(__file__).parent / "four_nodes_of_eight_a100.yaml").read_text())
    figures = {1: ("8", "100Gi"), 2: ("15", "200Gi"), 4: ("30", "400Gi"), 8: ("60", "800Gi")}
    words = {1: "one", 2: "two", 4: "four", 8: "eight"}
    variants = tuple(
        Variant(gpus=gpus, cpu=cpu, memory=memory, name=f"{words[gpus]}-a100-80g-gpu-wg")
        for gpus, (cpu, memory) in figures.items()
    )
    rendered = groups_of(cluster(WorkersSettings(pool="a100", variants=variants)), A100)

    # Kubernetes allows no upper case in names. The guide's `ray stop` before the end would undo Ray's drain.
    assert {name: as_chart_values(group) for name, group in rendered.items()} == {
        name.lower(): with_plain_quantities({key: value for key, value in values.items() if key != "lifecycle"})
        for name, values in guide.items()
    }


def as_chart_values(group: dict[str, Any]) -> dict[str, Any]:
    """A worker group with the keys of the ray-cluster chart, which has the pod's fields beside the group's."""
    pod = group["template"]["spec"]
    container = pod["containers"][0]
    values = {key: group[key] for key in ("replicas", "minReplicas", "maxReplicas", "rayStartParams")}
    env = [each for each in container["env"] if each["name"] != DRAIN_VARIABLE]
    values |= {"containerEnv": env, "affinity": pod["affinity"]}
    return with_plain_quantities({**values, "resources": container["resources"]})


def with_plain_quantities(values: dict[str, Any]) -> dict[str, Any]:
    """The same values with quantities as numbers: the guide has `cpu: 8`; the API server also accepts "8"."""
    resources = {
        kind: {name: amount(str(quantity)) for name, quantity in amounts.items()}
        for kind, amounts in values["resources"].items()
    }
    return {**values, "resources": resources}


@pytest.mark.parametrize(
    ("gpus", "sizes"),
    [
        (8, (1, 2, 4, 8)),
        (6, (1, 2, 4, 6)),
        (3, (1, 2, 3)),
        (2, (1, 2)),
        (1, (1,)),
        (0, (0,)),
        (16, (1, 2, 4, 8, 16)),
    ],
)
def test_sizes_double_up_to_the_whole_node(gpus: int, sizes: tuple[int, ...]) -> None:
    assert doubling(gpus) == sizes


def test_each_size_gets_its_share_of_the_node_less_a_sixteenth() -> None:
    groups = worker_groups(A100, WorkersSettings(pool="a100"))
    assert [(group.gpus, group.cpu, group.memory) for group in groups] == [
        (1, "7", "117Gi"),
        (2, "15", "234Gi"),
        (4, "30", "468Gi"),
        (8, "60", "937Gi"),
    ]


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 6, 8])
def test_workers_that_fill_a_node_leave_its_reserve_free(gpus: int) -> None:
    pool = NodePool(pool="p", count=2, cpu="48", memory="500Gi", gpus=gpus)
    reserve = Reserve(cpu="6", memory="20Gi")
    for group in worker_groups(pool, WorkersSettings(pool="p", reserve=reserve)):
        fit = Decimal(gpus // group.gpus)
        assert fit * amount(str(group.cpu)) <= 48 - 6
        assert fit * amount(str(group.memory)) <= amount("480Gi")


def test_there_are_two_workers_of_each_partial_size_and_one_whole_worker_for_each_node() -> None:
    groups = worker_groups(A100, WorkersSettings(pool="a100"))
    assert [(group.name, group.min_replicas, group.max_replicas) for group in groups] == [
        ("a100-1gpu", 0, 2),
        ("a100-2gpu", 0, 2),
        ("a100-4gpu", 0, 2),
        ("a100-8gpu", 0, 4),
    ]


def test_a_pool_without_gpus_has_one_group_of_whole_nodes() -> None:
    group = groups_of(cluster(WorkersSettings(pool="cpu")), CPU)["cpu-cpu"]
    container = group["template"]["spec"]["containers"][0]
    assert group["maxReplicas"] == 3
    assert container["resources"]["limits"] == {"cpu": "30", "memory": "120Gi"}
    assert group["rayStartParams"] == {"block": "true", "num-gpus": "0"}
    assert "affinity" not in group["template"]["spec"]


def test_only_workers_of_a_whole_gpu_node_are_full_workers() -> None:
    groups = groups_of(cluster(WorkersSettings(pool="a100")), A100)
    offered = {name: json.loads(json.loads(group["rayStartParams"]["resources"])) for name, group in groups.items()}
    assert offered == {
        "a100-1gpu": {PRODUCT: 1},
        "a100-2gpu": {PRODUCT: 2},
        "a100-4gpu": {PRODUCT: 4},
        "a100-8gpu": {PRODUCT: 8, "full-worker": 1},
    }


def test_gpus_without_a_product_name_may_be_of_any_product() -> None:
    pool = NodePool(pool="gpu", count=1, cpu="8", memory="64Gi", gpus=1)
    group = groups_of(cluster(WorkersSettings(pool="gpu")), pool)["gpu-1gpu"]
    assert json.loads(json.loads(group["rayStartParams"]["resources"])) == {"full-worker": 1}
    assert "affinity" not in group["template"]["spec"]


def test_a_cluster_may_have_several_pools_and_products() -> None:
    h100 = NodePool(pool="h100", count=2, cpu="96", memory="2000Gi", gpus=6, gpu_product="NVIDIA-H100-80GB-HBM3")
    groups = groups_of(
        cluster(WorkersSettings(pool="a100"), WorkersSettings(pool="h100"), WorkersSettings(pool="cpu")),
        A100,
        h100,
        CPU,
    )
    assert {name: group["maxReplicas"] for name, group in groups.items()} == {
        **{"a100-1gpu": 2, "a100-2gpu": 2, "a100-4gpu": 2, "a100-8gpu": 4},
        **{"h100-1gpu": 2, "h100-2gpu": 2, "h100-4gpu": 2, "h100-6gpu": 2},
        "cpu-cpu": 3,
    }
    affinity = groups["h100-6gpu"]["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["NVIDIA-H100-80GB-HBM3"]


def test_workers_select_their_pools_labels_and_tolerate_its_taints() -> None:
    pool = NodePool.model_validate(
        {**A100.model_dump(), "labels": {"team": "a"}, "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
    )
    pod = groups_of(cluster(WorkersSettings(pool="a100")), pool)["a100-8gpu"]["template"]["spec"]
    assert pod["nodeSelector"] == {"team": "a"}
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "", "effect": "NoSchedule"}]


def test_a_reserve_of_all_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lower reserve.memory"):
        ray_cluster(cluster(WorkersSettings(pool="a100", reserve=Reserve(memory="2000Gi"))), (A100,))
