"""The settings of a stack file, and the findings of invalid ones."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from core.messages import MOST
from core.problems import StackFileError
from core.stack_file import LARGEST_FILE
from stacks.load import load, parse
from stacks.program.config import running_stack
from tests.unit.findings import findings

ROOT = Path(__file__).parents[3]
CLUSTER = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "a100"}}
NODES = [{"pool": "a100", "count": 4, "cpu": 64, "memory": "1000Gi", "gpus": 8}]


def tenants(**cluster: Any) -> dict[str, Any]:
    return {"nodes": NODES, "tenants": [{"name": "team-a", "clusters": [{**CLUSTER, **cluster}]}]}


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


def test_keys_of_other_programs_are_skipped(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {"kubernetes:context": "x", "ray-platform:operator": {"replicas": 2}}}))
    assert load(file).operator.replicas == 2


def test_no_finding_shows_a_possible_secret() -> None:
    env = {"HF_TOKEN": "hunter2", "DB_PASSWORD": ["hunter2"]}
    found = findings(tenants(env=env, overrides={"authOptions": {"secretName": 1, "token": "hunter2"}}))
    assert found
    assert "hunter2" not in repr(found)


def test_only_the_first_of_very_many_errors_are_reported() -> None:
    values = {f"key{number}": 1 for number in range(MOST + 500)}
    found = findings(values)
    assert len(found) == MOST + 1
    assert found[-1].message == "500 more errors are not listed: correct these first"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ":1:1: the file is empty"),
        (
            b"config:\n  ray-platform: {}",
            ":2:3: ray-platform: key 'ray-platform' has no namespace: write 'ray-platform:",
        ),
        (b"config: \x07", ":1:9: a control character, U+0007: remove it"),
        (b"#" * (LARGEST_FILE + 1), f": the file is larger than {LARGEST_FILE} bytes"),
        (b"config: {}\n# caf\xe9", ":2:6: byte 0xe9 is not UTF-8: save the file in that encoding"),
        (None, ": cannot be read: No such file"),
    ],
    ids=["empty", "no namespace", "control character", "large", "encoding", "missing"],
)
def test_a_file_that_is_not_a_stack_file_is_reported(tmp_path: Path, content: bytes | None, expected: str) -> None:
    file = tmp_path / "Pulumi.bad.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StackFileError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}{expected}")


def test_a_stack_file_with_only_a_salt_has_no_settings(tmp_path: Path) -> None:
    """So `pulumi stack init` leaves it."""
    file = tmp_path / "Pulumi.new.yaml"
    file.write_text("encryptionsalt: v1:abc\n")
    assert load(file) == parse({})


def test_pulumis_configuration_and_the_file_have_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    handed_over = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(handed_over))
    assert running_stack() == load(ROOT / "Pulumi.dev.yaml")


def test_an_unknown_key_of_the_running_stack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"ray-platform:oprator": "{}", "other:key": "x"}))
    with pytest.raises(StackFileError, match=r"unknown key 'oprator': did you mean 'operator'"):
        running_stack()


@pytest.mark.parametrize(("operator", "place"), [("{replicas: 9}", "Pulumi.test.yaml:2:37: "), ("{replicas: 2}", "")])
def test_an_error_of_the_running_stack_has_its_line_if_the_file_is_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str, place: str
) -> None:
    (tmp_path / "Pulumi.test.yaml").write_text(f"config:\n  ray-platform:operator: {operator}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "test")
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"ray-platform:operator": '{"replicas": 9}'}))
    with pytest.raises(StackFileError) as refused:
        running_stack()
    assert str(refused.value) == f"{place}ray-platform:operator.replicas: 9 is not allowed: give at most 5"


def test_an_encrypted_value_of_the_running_stack_is_refused_though_pulumi_passes_it_in_plain_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"ray-platform:operator": '{"version": "1.6.2"}'}))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps(["ray-platform:operator"]))
    with pytest.raises(StackFileError, match="ray-platform:operator: is encrypted, but must be plain text"):
        running_stack()


@pytest.mark.parametrize("value", ["[" * 100_000, f"{'[' * 900}{']' * 900}"])
def test_a_configuration_that_nests_without_end_is_reported(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"ray-platform:nodes": value}))
    with pytest.raises(StackFileError, match=r"too many mappings|a mapping .* is expected here"):
        running_stack()
