"""What a user relies on when worker groups are derived from a node pool, by either profile or by settings."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ray.autoscaler._private.kuberay.autoscaling_config import _get_ray_resources_from_group_spec

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import Budget, RayClusterSettings, Reserve, Variant, WorkersSettings
from components.ray_cluster.worker_groups import WorkerGroup, doubling, tiling, worker_groups
from core.nodes import NodePool
from core.quantities import amount
from kuberay.ray_start import DRAIN_VARIABLE
from stacks.objects.ray_clusters import with_tenant_defaults
from stacks.settings import TenantSettings

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
    ("profile", "gpus", "sizes"),
    [
        *((each, 8, (1, 2, 4, 8)) for each in (doubling, tiling)),
        *((each, 16, (1, 2, 4, 8, 16)) for each in (doubling, tiling)),
        *((each, 1, (1,)) for each in (doubling, tiling)),
        *((each, 0, (0,)) for each in (doubling, tiling)),
        (doubling, 6, (1, 2, 4, 6)),
        (tiling, 6, (1, 2, 3, 6)),
        (doubling, 3, (1, 2, 3)),
        (doubling, 2, (1, 2)),
        (tiling, 4, (1, 2, 4)),
    ],
)
def test_sizes_double_up_to_the_whole_node_or_fill_it_without_rest(
    profile: Callable[[int], tuple[int, ...]], gpus: int, sizes: tuple[int, ...]
) -> None:
    assert profile(gpus) == sizes


def test_each_size_gets_its_share_of_the_node_less_a_sixteenth_and_the_whole_one_a_worker_for_each_node() -> None:
    groups = worker_groups(A100, WorkersSettings(pool="a100"))
    assert [(each.name, each.gpus, each.cpu, each.memory, each.min_replicas, each.max_replicas) for each in groups] == [
        ("a100-1gpu", 1, "7", "117Gi", 0, 2),
        ("a100-2gpu", 2, "15", "234Gi", 0, 2),
        ("a100-4gpu", 4, "30", "468Gi", 0, 2),
        ("a100-8gpu", 8, "60", "937Gi", 0, 4),
    ]


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 6, 8])
def test_workers_that_fill_a_node_leave_its_reserve_free(gpus: int) -> None:
    pool = NodePool(pool="p", count=2, cpu="48", memory="500Gi", gpus=gpus)
    reserve = Reserve(cpu="6", memory="20Gi")
    for group in worker_groups(pool, WorkersSettings(pool="p", reserve=reserve)):
        fit = Decimal(gpus // group.gpus)
        assert fit * amount(str(group.cpu)) <= 48 - 6
        assert fit * amount(str(group.memory)) <= amount("480Gi")


def test_a_pool_without_gpus_has_one_group_of_whole_nodes() -> None:
    group = groups_of(cluster(WorkersSettings(pool="cpu")), CPU)["cpu-cpu"]
    container = group["template"]["spec"]["containers"][0]
    assert group["maxReplicas"] == 3
    assert container["resources"]["limits"] == {"cpu": "30", "memory": "120Gi"}
    assert group["rayStartParams"] == {"block": "true", "num-gpus": "0"}
    assert "affinity" not in group["template"]["spec"]


ACCELERATORS = [
    ("amd.com/gpu", "2", {}),
    ("nvidia.com/mig-1g.10gb", "2", {}),
    ("gpu.intel.com/i915", "2", {}),
    ("aws.amazon.com/neuroncore", "0", {"neuron_cores": 2}),
    ("habana.ai/gaudi", "0", {"HPU": 2}),
    ("huawei.com/Ascend910", "0", {"NPU": 2}),
    ("google.com/tpu", "0", {"TPU": 2}),
]
"""Resources of device plugins, with what two of them are to Ray (ray, python/ray/_private/accelerators)."""


@pytest.mark.parametrize(("resource", "gpus", "custom"), ACCELERATORS)
def test_what_ray_has_of_other_accelerators_is_derived(resource: str, gpus: str, custom: dict[str, int]) -> None:
    pool = A100.model_copy(update={"gpu_resource": resource, "gpu_product": None})
    groups = groups_of(cluster(WorkersSettings(pool="a100")), pool)
    assert list(groups) == ["a100-1gpu", "a100-2gpu", "a100-4gpu", "a100-8gpu"]
    two = groups["a100-2gpu"]
    assert two["template"]["spec"]["containers"][0]["resources"]["limits"][resource] == "2"
    assert two["rayStartParams"]["num-gpus"] == gpus
    assert json.loads(json.loads(two["rayStartParams"].get("resources", '"{}"'))) == custom
    own = {"name": "c", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    group = {"groupName": "g", "cpu": 1, "memory": "4Gi", "gpus": 2, "gpuResource": resource}
    settings = RayClusterSettings.model_validate({**own, "workerGroups": [group]})
    [body] = ray_cluster(settings, ())["spec"]["workerGroupSpecs"]
    read = _get_ray_resources_from_group_spec(body, is_head=False)
    assert {name: read[name] for name in read if name in {"GPU", *custom} and read[name]} == (custom or {"GPU": 2})


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


ANY_A100 = NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8)


def caps(pool: NodePool, **settings: Any) -> dict[int, int | None]:
    """The maximum workers by GPUs."""
    workers = WorkersSettings.model_validate({"pool": pool.pool, "profile": "tiling", **settings})
    return {group.gpus: group.max_replicas for group in worker_groups(pool, workers)}


@st.composite
def nodes_with_workers(draw: st.DrawFn) -> tuple[NodePool, Reserve, list[WorkerGroup]]:
    """A node, its reserve, and workers that fit on it by GPUs, of derived sizes or of any."""
    gpus = draw(st.integers(1, 16))
    cpu, memory = draw(st.integers(2 * gpus, 512)), draw(st.integers(2 * gpus, 4096))
    pool = NodePool(pool="p", count=3, cpu=str(cpu), memory=f"{memory}Gi", gpus=gpus)
    reserve = Reserve(cpu=str(draw(st.integers(0, cpu - gpus))), memory=f"{draw(st.integers(0, memory - gpus))}Gi")
    profile = draw(st.sampled_from(["tiling", "doubling"]))
    any_size = st.lists(st.integers(1, gpus), min_size=1, max_size=6, unique=True)
    variants = draw(st.none() | any_size.map(lambda sizes: tuple(Variant(gpus=size) for size in sizes)))
    workers = WorkersSettings(pool="p", profile=profile, reserve=reserve, variants=variants)
    groups = worker_groups(pool, workers)
    chosen: list[WorkerGroup] = []
    for group in draw(st.lists(st.sampled_from(groups), min_size=1, max_size=gpus)):
        if group.gpus + sum(each.gpus for each in chosen) <= gpus:
            chosen.append(group)
    return pool, reserve, chosen


@given(nodes_with_workers())
def test_workers_that_fit_by_gpus_fit_by_cpus_and_memory_beside_the_reserve(
    case: tuple[NodePool, Reserve, list[WorkerGroup]],
) -> None:
    pool, reserve, workers = case
    for resource in ("cpu", "memory"):
        taken = sum((amount(str(getattr(each, resource))) for each in workers), Decimal(0))
        assert taken + amount(str(getattr(reserve, resource))) <= amount(str(getattr(pool, resource)))


@pytest.mark.parametrize("gpus", [3, 6])
def test_a_whole_share_is_not_rounded_down(gpus: int) -> None:
    pool = NodePool(pool="p", count=1, cpu="48", memory="480Gi", gpus=gpus)
    workers = WorkersSettings(pool="p", profile="tiling", reserve=Reserve(cpu="0", memory="0"))
    first = worker_groups(pool, workers)[0]
    assert (first.cpu, first.memory) == (str(48 // gpus), f"{480 // gpus}Gi")


@pytest.mark.parametrize(
    ("pool", "settings", "expected"),
    [
        (ANY_A100, {}, {1: 32, 2: 16, 4: 8, 8: 4}),
        (CPU, {}, {0: 3}),
        (ANY_A100, {"variants": [{"gpus": 3}, {"gpus": 1, "maxReplicas": 5}]}, {3: 8, 1: 5}),
        (ANY_A100, {"budget": {"gpus": 12}}, {1: 12, 2: 6, 4: 3, 8: 1}),
        (ANY_A100, {"budget": {"gpus": 4}}, {1: 4, 2: 2, 4: 1, 8: 0}),
        (ANY_A100, {"budget": {"cpu": 60}}, {1: 8, 2: 4, 4: 2, 8: 1}),
        (ANY_A100, {"budget": {"memory": "500Gi"}}, {1: 4, 2: 2, 4: 1, 8: 0}),
        (ANY_A100, {"budget": {"gpus": 1000}}, {1: 32, 2: 16, 4: 8, 8: 4}),
        (CPU, {"budget": {"gpus": 0, "cpu": 60}}, {0: 2}),
    ],
)
def test_each_size_has_as_many_workers_as_fit_on_the_pools_nodes_and_into_the_budget(
    pool: NodePool, settings: dict[str, Any], expected: dict[int, int]
) -> None:
    assert caps(pool, **settings) == expected


def given_to(profile: str, budget: Budget | None = None, **tenant: Any) -> Budget:
    """The budget of a cluster's workers, including its tenant's limits."""
    cluster = RayClusterSettings(
        name="training",
        ray_version="2.60.0",
        image="rayproject/ray:2.60.0",
        workers=(WorkersSettings.model_validate({"pool": "a100", "profile": profile, "budget": budget or Budget()}),),
    )
    settings = TenantSettings.model_validate({"name": "team-a", **tenant})
    return with_tenant_defaults(settings, with_tenant_defaults(settings, cluster)).workers[0].budget


def test_the_default_budget_is_that_of_quota_and_own_queue() -> None:
    tenant: dict[str, Any] = {"quota": {"gpus": 24, "cpu": 100}, "queue": {"capability": {"gpus": 16, "memory": "2Ti"}}}
    assert given_to("tiling", **tenant) == Budget(gpus=16, cpu="100", memory=str(2 * 2**40))
    assert given_to("tiling", Budget(gpus=32), **tenant).gpus == 32
    assert given_to("doubling", **tenant) == given_to("tiling", queue="shared") == Budget()


def test_ados_figures_result_for_the_node_in_its_guide() -> None:
    guide = yaml.safe_load((Path(__file__).parent / "four_nodes_of_eight_a100.yaml").read_text())
    published = [
        (group["resources"]["limits"]["cpu"], group["resources"]["limits"]["memory"], group["maxReplicas"])
        for group in guide.values()
    ]
    groups = worker_groups(ANY_A100, WorkersSettings(pool="a100", profile="ado"))
    assert [(int(group.cpu or 0), group.memory, group.max_replicas) for group in groups] == published


def test_a_size_may_have_its_own_idle_timeout() -> None:
    workers = {"pool": "a100", "variants": [{"gpus": 1, "idleTimeout": "10s"}, {"gpus": 8}]}
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "workers": workers}
    small, whole = ray_cluster(valid(entry), (ANY_A100,))["spec"]["workerGroupSpecs"]
    assert small["idleTimeoutSeconds"] == 10
    assert "idleTimeoutSeconds" not in whole
