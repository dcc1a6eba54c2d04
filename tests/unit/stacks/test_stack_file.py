"""What a stack file may say, and what its author reads when it says something else."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.running import running_stack
from stacks.settings import LARGEST_FILE, StackFileError, load, parse

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
CLUSTER = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "a100"}}
NODES = [{"pool": "a100", "count": 4, "cpu": 64, "memory": "1000Gi", "gpus": 8}]


def tenants(**cluster: Any) -> dict[str, Any]:
    return {"nodes": NODES, "tenants": [{"name": "team-a", "clusters": [{**CLUSTER, **cluster}]}]}


def message(values: dict[str, Any]) -> str:
    with pytest.raises(StackFileError) as refused:
        parse(values)
    return str(refused.value)


def test_the_dev_stack_is_four_nodes_of_eight_a100_and_one_cluster() -> None:
    settings = load(ROOT / "Pulumi.dev.yaml")
    [pool] = settings.nodes
    assert (pool.count, pool.cpu, pool.memory, pool.gpus, pool.gpu_product) == (
        4,
        "64",
        "1000Gi",
        8,
        "NVIDIA-A100-SXM4-80GB",
    )
    assert [cluster.name for tenant in settings.tenants for cluster in tenant.clusters] == ["training"]


def test_an_empty_stack_is_an_operator_alone() -> None:
    settings = parse({})
    assert (settings.operator.version, settings.nodes, settings.tenants) == ("1.6.2", (), ())


def test_keys_of_other_programs_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {"kubernetes:context": "x", "ray-platform:operator": {"replicas": 2}}}))
    assert load(file).operator.replicas == 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"tennants": []},
            "ray-platform: unknown key 'tennants': did you mean 'tenants'? Known keys: kubernetes, ",
        ),
        (
            tenants(idleTimout="5m"),
            "ray-platform:tenants[0].clusters[0]: unknown key 'idleTimout': did you mean 'idleTimeout'? Known keys",
        ),
        (
            tenants(ray_version="2.60.0"),
            "ray-platform:tenants[0].clusters[0]: unknown key 'ray_version': did you mean 'rayVersion'?",
        ),
        (
            tenants(workers={"pool": "a100", "variants": [{"gpus": 1, "maxReplica": 1}]}),
            "ray-platform:tenants[0].clusters[0].workers[0].variants[0]: unknown key 'maxReplica': did you",
        ),
        (
            {"operator": {"batchScheduler": "slurm"}},
            "ray-platform:operator.batchScheduler: 'slurm' is not allowed: input should be 'volcano', 'yunikorn', '",
        ),
        ({"nodes": [{"pool": "a", "count": 1, "cpu": 8}]}, "ray-platform:nodes[0].memory: is required and not there"),
        (
            {"nodes": [{**NODES[0], "cpu": "8GB"}]},
            "ray-platform:nodes[0].cpu: '8GB' is not a Kubernetes quantity; write for example 8, 500m or 64Gi",
        ),
        (
            {"nodes": [{**NODES[0], "count": 0}]},
            "ray-platform:nodes[0].count: 0 is not allowed: input should be greater",
        ),
        (
            {"nodes": [{**NODES[0], "cpu": True}]},
            "ray-platform:nodes[0].cpu: True is not allowed: input should be a valid",
        ),
        ({"nodes": [*NODES, *NODES]}, "ray-platform: nodes: pool a100 is used more than once"),
        (
            {"nodes": [{**NODES[0], "gpus": 0, "gpuProduct": "X"}]},
            "ray-platform:nodes[0]: pool 'a100' names gpuProduct 'X' but has 0 gpus: set gpus",
        ),
        (
            {"tenants": [{"name": "kube-system"}]},
            "ray-platform: tenant 'kube-system': namespace 'kube-system' is the",
        ),
        (
            {"tenants": [{"name": "a", "namespace": "ray-system"}]},
            "ray-platform: tenant 'a': namespace 'ray-system' is",
        ),
        (
            {"operator": {"watchNamespaces": ["b"]}, "tenants": [{"name": "a"}]},
            "ray-platform: tenant 'a': namespace 'a' is not in operator.watchNamespaces (b): add it there",
        ),
        (
            tenants(workers={"pool": "h100"}),
            "ray-platform: tenant 'team-a', cluster 'training': pool 'h100' is not in nodes: use one of a100",
        ),
        ({"operator": "1.6.2"}, "ray-platform:operator: '1.6.2' is not allowed: input should be a valid dictionary"),
        ({"tenants": [{"name": "team-ä"}]}, "ray-platform:tenants[0].name: 'team-ä' is not a name of at most 40"),
        ({"tenants": [{"name": "a\nb"}]}, "ray-platform:tenants[0].name: 'a\\nb' is not a name of at most 40"),
        ({"tenants": [{"name": "$(reboot)"}]}, "ray-platform:tenants[0].name: '$(reboot)' is not a name of at most 40"),
    ],
)
def test_a_fault_is_said_in_one_line_with_place_value_and_what_is_allowed(
    values: dict[str, Any], expected: str
) -> None:
    assert message(values).startswith(expected)
    assert "\n" not in message(values)


def test_all_faults_are_said_at_once() -> None:
    lines = message({"nodes": [{"pool": "A", "count": 1, "cpu": 8, "memory": "1Zi"}], "operator": {"replicas": 9}})
    assert [line.partition(": ")[0] for line in lines.splitlines()] == [
        "ray-platform:operator.replicas",
        "ray-platform:nodes[0].pool",
        "ray-platform:nodes[0].memory",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is no stack file"),
        ("config: [1]", "is no stack file"),
        ("a: [", "is not YAML"),
        ("\x00", "is not YAML"),
        ("#" * (LARGEST_FILE + 1), "is greater than"),
    ],
)
def test_what_is_no_stack_file_is_said_so(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "Pulumi.bad.yaml"
    file.write_text(text)
    with pytest.raises(StackFileError, match=expected):
        load(file)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StackFileError, match=r"Pulumi.none.yaml cannot be read: No such file"):
        load(tmp_path / "Pulumi.none.yaml")


def test_pulumis_configuration_and_the_file_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    handed_over = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(handed_over))
    assert running_stack() == load(ROOT / "Pulumi.dev.yaml")


def test_an_unknown_key_of_the_running_stack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"ray-platform:oprator": "{}", "other:key": "x"}))
    with pytest.raises(StackFileError, match=r"unknown key 'oprator': did you mean 'operator'"):
        running_stack()
