"""Which of an environment's stacks has which resources."""

import re
from pathlib import Path
from typing import Any

import pytest

from components.kueue import component
from components.manifest_files import read
from core.problems import StackFileError
from stacks.load import parse
from stacks.objects.ownership import group_for, ownership_of, stack_of, stacks_of
from stacks.program.build import build
from stacks.settings import StackSettings
from testbed.recorder import Recorder, record

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("kubectl_that_renders")]

NODES = [{"pool": "a100", "count": 4, "cpu": 64, "memory": "1000Gi", "gpus": 8}]
NAMESPACES = [f"team-{number}" for number in range(200)]


def environment(groups: int | None = 3, **more: Any) -> StackSettings:
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    tenants = [{"name": name, "quota": {"cpu": 100}, "clusters": [cluster]} for name in ("blue", "green", "red")]
    split = {"split": {"stacks": groups}} if groups else {}
    settings = {"operator": {"location": "config/default"}, "nodes": NODES, "tenants": tenants, **split, **more}
    return parse(settings)


def recorded(settings: StackSettings, stack: str) -> Recorder:
    return record(lambda: build(settings), stack=stack)


def resources(settings: StackSettings, stack: str) -> set[tuple[str, str]]:
    return {(kind, name) for kind, names in recorded(settings, stack).kinds().items() for name in names}


def test_the_platforms_stack_comes_first_and_tenants_have_stacks_of_the_environment() -> None:
    assert stacks_of(environment(2), "prod") == ("prod", "prod.tenants-01", "prod.tenants-02")
    assert stacks_of(environment(2), "acme/prod")[1] == "acme/prod.tenants-01"
    assert stacks_of(environment(None), "prod") == ("prod",)
    assert stack_of("blue", environment(None), "prod") == "prod"


def test_tenants_are_spread_over_all_groups_and_few_move_if_the_number_of_groups_changes() -> None:
    before, after = ({name: group_for(name, groups) for name in NAMESPACES} for groups in (4, 5))
    counts = [list(before.values()).count(group) for group in range(1, 5)]
    assert min(counts) > 30
    moved = {name for name in NAMESPACES if before[name] != after[name]}
    assert all(after[name] == 5 for name in moved)
    assert len(moved) < 60


def test_each_tenant_is_in_one_stack_and_the_platform_in_its_own() -> None:
    settings = environment()
    parts = [ownership_of(settings, stack) for stack in stacks_of(settings, "prod")]
    assert [part.platform for part in parts] == [True, False, False, False]
    found = [tenant.name for part in parts for tenant in part.tenants(settings)]
    assert sorted(found) == ["blue", "green", "red"]
    assert ownership_of(environment(None), "prod").tenants(settings) == settings.tenants


def test_all_stacks_together_create_the_same_as_one_stack_and_nothing_twice() -> None:
    """Except for the resources that each stack has for itself: the provider, and components that are only parents."""
    settings = environment()
    whole = resources(environment(None), "prod")
    parts = [resources(settings, stack) for stack in stacks_of(settings, "prod")]
    assert set().union(*parts) == whole
    twice = {each for part in parts for each in part if sum(each in other for other in parts) > 1}
    assert {kind for kind, _ in twice} == {"pulumi:providers:kubernetes", "ray-platform:index:Platform"}


@pytest.mark.parametrize("backend", ["volcano", "kueue"])
def test_queues_are_in_the_platforms_stack_and_a_tenants_own_beside_the_tenant(
    backend: str, manifest_file: Path, kueue_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(component, "render", lambda *_, **__: read(str(kueue_file)))
    more: dict[str, Any] = {
        "scheduler": {backend: {"location": str(manifest_file)}},
        "queues": [{"name": "shared", "allowedNamespaces": ["blue", "red"], "guarantee": {"cpu": 10}}],
    }
    tenants = [{"name": "blue", "queue": "shared"}, {"name": "green", "queue": {"guarantee": {"cpu": 10}}}]
    settings = environment(**more, tenants=tenants)
    whole = resources(environment(None, **more, tenants=tenants), "prod")
    parts = {stack: resources(settings, stack) for stack in stacks_of(settings, "prod")}
    assert set().union(*parts.values()) == whole
    of_green = {name for kind, name in parts[stack_of("green", settings, "prod")]}
    assert {"platform-queues-green", "platform-queues-green-guard"} <= of_green
    assert "platform-queues-shared" in {name for _, name in parts["prod"]}
    if backend == "kueue":
        assert "platform-queues-shared/blue" in {name for _, name in parts[stack_of("blue", settings, "prod")]}


def test_the_field_manager_and_the_cluster_are_those_of_the_environment() -> None:
    """So that nothing changes for an object that moves to another stack."""
    settings = environment()
    found = recorded(settings, stack_of("blue", settings, "prod"))
    provider = found.registered["cluster"]
    assert provider.inputs["clusterIdentifier"] == "ray-platform/prod"
    quota = found.registered["blue/quota-resource-quota"].inputs["metadata"]["annotations"]
    assert quota["pulumi.com/patchFieldManager"] == "pulumi-ray-platform-prod"


def test_a_stack_of_tenants_that_the_environment_does_not_have_is_refused() -> None:
    with pytest.raises(StackFileError, match=re.escape("prod is split into 3 stacks of tenants")):
        ownership_of(environment(), "prod.tenants-04")
    with pytest.raises(StackFileError, match="prod is one stack"):
        ownership_of(environment(None), "prod.tenants-01")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"operator": {"location": "config/default", "watchNamespaces": ["blue", "green", "red"]}},
            "remove watchNamespaces, or remove split",
        ),
        ({"redis": {}}, "set scope: perTenant or mode: external, or remove split"),
    ],
)
def test_settings_that_need_tenants_namespaces_before_the_tenants_are_refused(
    more: dict[str, Any], message: str
) -> None:
    environment(None, **more)
    with pytest.raises(StackFileError, match=message):
        environment(**more)


def test_the_program_of_a_group_judges_its_own_rayclusters_alone() -> None:
    """Others are judged by the command that runs all stacks, and by their own."""
    broken = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "head": {"rayStartParams": {"a": "1"}}}
    tenants = [{"name": "blue", "clusters": [broken]}, {"name": "green"}]
    values = {"nodes": NODES, "tenants": tenants, "split": {"stacks": 3}}
    own = group_for("blue", 3)
    for group in (None, own):
        with pytest.raises(StackFileError, match="rayStartParams"):
            parse(values, group)
    assert [each.name for each in parse(values, own % 3 + 1).tenants] == ["blue", "green"]
