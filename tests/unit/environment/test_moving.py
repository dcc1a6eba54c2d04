"""Moves of tenants between stacks: the outputs, what prevents a move, and resources that move from state to state."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from stacks.commands.environment.moving import MoveError, move, planned
from stacks.commands.environment.state_move import ROOT_TYPE, Row, Rows, arranged, namespace_of, tenants_among
from stacks.commands.environment.workspace import Stacks
from stacks.load import parse
from stacks.objects.ownership import stack_of
from stacks.settings import StackSettings

TENANTS = [{"name": "blue"}]
ONE, SPLIT = parse({"tenants": TENANTS}), parse({"tenants": TENANTS, "split": {"stacks": 1}})

OF_PLATFORM = {"operator": {"version": "1.6.2"}, "kubernetes": {"cluster": "a uid"}}

OF_TENANT = {
    "clusters": {"blue/training": {"status": "ready"}},
    "jobs": {"blue/nightly": {"status": "Complete"}},
    "services": {"blue/chat": {"status": "Running"}},
}


class States:
    """The stacks of an environment, by their resources."""

    environment = "prod"

    def __init__(self, states: Mapping[str, Rows]) -> None:
        self._states = states

    def existing(self) -> set[str]:
        return set(self._states)

    def read(self, name: str, **_: bool) -> dict[str, Any]:
        return {"deployment": {"resources": self._states[name]}}


def prod(outputs: Mapping[str, Any]) -> list[Row]:
    root = {"urn": "urn:pulumi:prod::ray-platform::pulumi:pulumi:Stack::ray-platform-prod", "type": ROOT_TYPE}
    tenant = {"urn": "urn:pulumi:prod::ray-platform::ray-platform:index:Tenant::blue", "parent": root["urn"]}
    return [{**root, "outputs": outputs}, {**tenant, "type": "ray-platform:index:Tenant"}]


def moved(states: Mapping[str, Rows], settings: StackSettings) -> Mapping[str, Rows]:
    return planned(cast("Stacks", States(states)), settings).final


def outputs(rows: Rows) -> Any:
    return rows[0]["outputs"]


def test_outputs_move_with_their_tenants_and_every_stack_knows_its_cluster() -> None:
    """`build` writes the same: without the cluster's UID the next update would compare nothing."""
    split = moved({"prod": prod({**OF_PLATFORM, **OF_TENANT})}, SPLIT)
    assert outputs(split["prod"]) == {**OF_PLATFORM, "split": 1}
    assert outputs(split["prod.tenants-01"]) == {"kubernetes": {"cluster": "a uid"}, "split": 1, **OF_TENANT}
    assert outputs(moved(split, ONE)["prod"]) == {**OF_PLATFORM, **OF_TENANT}
    # A state of an older release has no cluster.
    assert outputs(moved({"prod": prod(OF_TENANT)}, SPLIT)["prod.tenants-01"]) == {"split": 1, **OF_TENANT}


def test_without_a_place_for_the_old_states_nothing_moves(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stacks = cast("Stacks", States({"prod": prod(OF_TENANT)}))
    reason = f"{re.escape(str(tmp_path / 'file'))}/prod-.*: Not a directory. Nothing was moved"
    with pytest.raises(MoveError, match=reason):
        move(stacks, planned(stacks, SPLIT), tmp_path / "file", print)


ID = "8a9c"


def settings(groups: int | None) -> StackSettings:
    return parse({"split": {"stacks": groups}} if groups else {})


def urn(stack: str, types: str, name: str) -> str:
    return f"urn:pulumi:{stack}::ray-platform::{types}::{name}"


def one_stack(*namespaces: str) -> list[dict[str, Any]]:
    """The state of stack `prod` with some tenants."""
    root = urn("prod", "pulumi:pulumi:Stack", "ray-platform-prod")
    provider = urn("prod", "pulumi:providers:kubernetes", "cluster")
    platform = urn("prod", "ray-platform:index:Platform", "platform")
    operator = urn("prod", "ray-platform:index:Platform$kubernetes:apps/v1:Deployment", "platform-kuberay")
    rows: list[dict[str, Any]] = [
        {"urn": root, "type": "pulumi:pulumi:Stack"},
        {"urn": provider, "type": "pulumi:providers:kubernetes", "custom": True, "id": ID, "parent": root},
        {"urn": platform, "type": "ray-platform:index:Platform", "parent": root},
    ]
    kubernetes = {"custom": True, "provider": f"{provider}::{ID}"}
    rows.append({"urn": operator, "type": "kubernetes:apps/v1:Deployment", "parent": platform, **kubernetes})
    for name in namespaces:
        namespace = urn(
            "prod", "ray-platform:index:Platform$kubernetes:core/v1:Namespace", f"platform-namespace-{name}"
        )
        tenant = urn("prod", "ray-platform:index:Tenant", name)
        ray = urn("prod", "ray-platform:index:Tenant$kubernetes:ray.io/v1:RayCluster", f"{name}/training")
        needs = {"dependencies": [operator, namespace], "propertyDependencies": {"metadata": [namespace], "spec": None}}
        rows += [
            {"urn": namespace, "type": "kubernetes:core/v1:Namespace", "parent": platform, "id": name, **kubernetes},
            {"urn": tenant, "type": "ray-platform:index:Tenant", "parent": root},
            {"urn": ray, "type": "kubernetes:ray.io/v1:RayCluster", "parent": tenant, "id": ray, **kubernetes, **needs},
        ]
    return rows


def divided(before: Mapping[str, Rows], groups: int | None) -> Mapping[str, Rows]:
    """The states after a move to that many groups."""

    def owner(row: Row, by_urn: Mapping[str, Row]) -> str:
        namespace = namespace_of(row, by_urn, ["shared"])
        return stack_of(namespace, settings(groups), "prod") if namespace else "prod"

    names = ["prod", *(f"prod.tenants-{group:02}" for group in range(1, (groups or 0) + 1))]
    return arranged({name: [] for name in names} | dict(before), owner).final


def names(rows: Rows) -> list[str]:
    return [row["urn"].rpartition("::")[2] for row in rows]


def test_a_tenants_resources_move_and_their_dependencies_are_copied() -> None:
    after = divided({"prod": one_stack("blue", "red")}, 1)
    assert names(after["prod"]) == ["ray-platform-prod", "cluster", "platform", "platform-kuberay"]
    assert names(after["prod.tenants-01"]) == [
        *("ray-platform-prod.tenants-01", "platform", "cluster"),
        *("platform-namespace-blue", "blue", "blue/training"),
        *("platform-namespace-red", "red", "red/training"),
    ]


def test_a_moved_resource_only_loses_its_stack_and_dependencies_on_resources_that_stay() -> None:
    rows = {row["urn"]: row for row in divided({"prod": one_stack("blue")}, 1)["prod.tenants-01"]}
    group = "prod.tenants-01"
    ray = rows[urn(group, "ray-platform:index:Tenant$kubernetes:ray.io/v1:RayCluster", "blue/training")]
    namespace = urn(group, "ray-platform:index:Platform$kubernetes:core/v1:Namespace", "platform-namespace-blue")
    assert ray["parent"] == urn(group, "ray-platform:index:Tenant", "blue")
    assert ray["provider"] == f"{urn(group, 'pulumi:providers:kubernetes', 'cluster')}::{ID}"
    assert ray["dependencies"] == [namespace]
    assert ray["propertyDependencies"] == {"metadata": [namespace], "spec": []}
    assert all(row["parent"] in rows for row in rows.values() if row.get("parent"))


def test_moving_back_restores_the_states() -> None:
    before = one_stack("blue", "green", "red")
    split = divided({"prod": before}, 3)
    assert sorted(names(divided(split, None)["prod"])) == sorted(names(before))
    again = divided(divided(split, 5), 3)
    assert {stack: sorted(names(rows)) for stack, rows in again.items() if not stack.endswith(("4", "5"))} == {
        stack: sorted(names(rows)) for stack, rows in split.items()
    }


def test_a_moved_resource_has_the_provider_of_its_new_stack() -> None:
    """Stacks that have created their own providers have other ids."""
    split = dict(divided({"prod": one_stack("blue")}, 1))
    other = [{**row, "id": "other"} if row["type"].startswith("pulumi:providers:") else row for row in split["prod"]]
    ray = divided({**split, "prod": other}, None)["prod"][-1]
    assert ray["provider"] == f"{urn('prod', 'pulumi:providers:kubernetes', 'cluster')}::other"


def test_a_resource_that_has_moved_is_not_added_again() -> None:
    """After a move that was interrupted both states have it."""
    before = one_stack("blue", "red")
    complete = divided({"prod": before}, 1)
    assert divided({"prod": before, "prod.tenants-01": complete["prod.tenants-01"]}, 1) == complete


@pytest.mark.parametrize(
    ("types", "name", "namespace"),
    [
        ("ray-platform:index:Queues$kubernetes:x/v1:Queue", "queues-blue", "blue"),
        ("ray-platform:index:Queues$kubernetes:x/v1:Queue", "queues-shared", None),
        ("ray-platform:index:Queues$pulumi-python:dynamic/ray-platform:QueueGuard", "queues-blue-guard", "blue"),
        ("ray-platform:index:Queues$kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue", "queues-shared/blue", "blue"),
        ("ray-platform:index:ExternalRedis$kubernetes:core/v1:Secret", "redis-secret-blue", "blue"),
        ("ray-platform:index:RedisHa", "redis-blue", "blue"),
        ("kubernetes:apps/v1:Deployment", "kuberay", None),
    ],
)
def test_resources_of_the_platform_for_a_tenant_move_with_it(types: str, name: str, namespace: str | None) -> None:
    row = {"urn": urn("prod", f"ray-platform:index:Platform${types}", f"platform-{name}")}
    assert namespace_of(row, {row["urn"]: row}, ["shared"]) == namespace


def test_tenants_are_known_by_their_components_and_namespaces() -> None:
    assert tenants_among(row["urn"] for row in one_stack("blue", "red")) == {"blue", "red"}
