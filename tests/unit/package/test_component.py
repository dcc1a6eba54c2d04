"""RayPlatform in a program: which settings it takes, and how it refuses others."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from ray_platform import NodePool, RayPlatform, StackSettings, TenantSettings, load
from ray_platform.component import _values
from stacks.load import parse
from testbed.recorder import Recorder, record

ROOT = Path(__file__).parents[3]

FILES = [*ROOT.glob("Pulumi.*.yaml"), ROOT / "tests" / "stack_files" / "good" / "every-setting.yaml"]


def made(args: Any) -> Recorder:
    return record(lambda: RayPlatform("ray", args))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_typed_settings_are_checked_as_the_values_that_they_were_made_of(file: Path) -> None:
    settings = load(file)
    assert parse(_values(settings)) == settings


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"nodes": [{"pool": "a100"}]}, "ray-platform:nodes[0].count: "),
        ({"split": {"stacks": 2}}, "ray-platform:split: divides a stack of ray-platform's own program"),
        ({"extends": "base.yaml"}, "ray-platform:extends: has paths of files: pass load"),
        (
            StackSettings(tenants=(TenantSettings(name="a"), TenantSettings(name="a"))),
            "ray-platform:tenants[1].name: ",
        ),
    ],
    ids=["value", "split", "extends", "between models"],
)
def test_settings_that_are_not_valid_are_one_error(args: Any, message: str) -> None:
    with pytest.raises(pulumi.RunError) as refused:
        made(args)
    assert str(refused.value).startswith(message)


def test_a_stack_file_that_is_not_valid_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "platform.yaml"
    file.write_text("config: {ray-platform:nodes: [{pool: a100}]}")
    with pytest.raises(pulumi.RunError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}:1:31: ray-platform:nodes[0].count: ")


def test_a_mapping_has_the_keys_of_a_stack_file(kubectl_that_renders: Path) -> None:
    recorder = made({"nodes": [{"pool": "a100", "count": 1, "cpu": 8, "memory": "64Gi"}], "tenants": [{"name": "a"}]})
    assert recorder.registered["platform"].parent == "ray"
    pool = NodePool(pool="a100", count=1, cpu="8", memory="64Gi")
    typed = made(StackSettings(nodes=(pool,), tenants=(TenantSettings(name="a"),)))
    assert typed.registered == recorder.registered


def test_without_settings_those_of_the_running_stack_are_used(
    kubectl_that_renders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi.runtime, "get_config_env", lambda: {"ray-platform:tenants": '[{"name": "b"}]'})
    monkeypatch.setattr(pulumi.runtime, "get_config_secret_keys_env", list)
    assert "platform-namespace-b" in made(None).registered


@pytest.mark.parametrize("settings", [StackSettings, NodePool])
def test_the_host_for_programs_in_other_languages_refuses_the_settings(settings: type) -> None:
    """docs/package.md reports it under its limits."""
    with pytest.raises(TypeError, match=r"issubclass\(\) arg 1 must be a class"):
        Analyzer("ray-platform").analyze_type(settings, is_component_output=False)
