"""Moves of tenants between stacks: the outputs, and what prevents a move."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from stacks.commands.environment.moving import MoveError, move, planned
from stacks.commands.environment.state_move import ROOT_TYPE, Row, Rows
from stacks.commands.environment.workspace import Stacks
from stacks.load import parse
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


def test_a_state_of_an_older_release_has_no_cluster() -> None:
    split = moved({"prod": prod(OF_TENANT)}, SPLIT)
    assert outputs(split["prod.tenants-01"]) == {"split": 1, **OF_TENANT}


def test_without_a_place_for_the_old_states_nothing_moves(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stacks = cast("Stacks", States({"prod": prod(OF_TENANT)}))
    reason = f"{re.escape(str(tmp_path / 'file'))}/prod-.*: Not a directory. Nothing was moved"
    with pytest.raises(MoveError, match=reason):
        move(stacks, planned(stacks, SPLIT), tmp_path / "file", print)
