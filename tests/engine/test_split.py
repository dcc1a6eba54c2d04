"""An environment of several Pulumi stacks: commands for all of them, and moving from and to one stack."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest
from kubernetes import client

from local import paths
from local.rehearsal import Rehearsal
from stacks.commands.review.reports import changes
from stacks.load import load
from stacks.objects.ownership import stack_of
from testbed.machine import empty, fill, small_disk
from testbed.platform_stack import Rays, Stack
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(1800)]

NAMES = ("amber", "blue", "green", "red")
"""The namespaces of the tenants."""

MEGABYTES = 16
"""Of a disk for the states of the stacks."""

MOMENT = 0.7
"""Seconds for which all tenants' stacks work before they are killed. An idle machine needs some 2 for the update."""


def four_tenants(settings: dict[str, Any]) -> None:
    [tenant] = settings["tenants"]
    settings["tenants"] = [{**deepcopy(tenant), "name": name, "quota": {"cpu": 100, "memory": "2Ti"}} for name in NAMES]


def split(stacks: int | None) -> Any:
    def edit(settings: dict[str, Any]) -> None:
        settings.pop("split", None)
        settings.update({"split": {"stacks": stacks}} if stacks else {})

    return edit


def another_quota(settings: dict[str, Any]) -> None:
    for tenant in settings["tenants"]:
        tenant["quota"]["cpu"] += 1


class Environment:
    """The stacks of an environment, by `ray-platform`."""

    def __init__(self, stack: Stack) -> None:
        self.own = stack

    def run(self, *arguments: str, fails: bool = False) -> str:
        """Runs a command. Fails the test with its whole output unless it ends as expected."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=600)
        assert (process.returncode != 0) == fails, f"{arguments} ended with {process.returncode}:\n{output}"
        print(f"\n$ ray-platform {' '.join(arguments)}\n{output}")
        return output

    def start(self, command: str, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "stacks", command, self.own.name, *arguments],
            cwd=paths.ROOT,
            env=self.own.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def edit(self, *edits: Any) -> None:
        for each in edits:
            self.own.edit(each)

    def summary(self, *arguments: str) -> list[dict[str, Any]]:
        """What a command reports on each stack."""
        found: list[dict[str, Any]] = self.report(*arguments)["stacks"]
        return found

    def report(self, *arguments: str) -> dict[str, Any]:
        """A command's report, for programs."""
        command = [sys.executable, "-m", "stacks", arguments[0], self.own.name, *arguments[1:], "--json"]
        done = subprocess.run(
            command, cwd=paths.ROOT, env=self.own.environment, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def approved(self, file: Path) -> list[str]:
        """What a workflow compares right before an update: the changes of a preview."""
        preview = self.report("preview")
        file.write_text(json.dumps(preview))
        return changes(file)

    def changes(self) -> set[str]:
        """The changes in a preview of all stacks, without unchanged resources."""
        stacks = self.summary("preview")
        return {f"{each['stack']}: {change}" for each in stacks for change in each["changes"] if change != "same"}

    def stacks(self) -> set[str]:
        """Names of its stacks."""
        listed = json.loads(self.own.pulumi("stack", "ls", "--json").output)
        return {each["name"] for each in listed if each["name"].startswith(self.own.name)}


@pytest.fixture
def environment(stack_on_operator: MakeStack) -> Iterator[Environment]:
    """Three stacks after their first `up`, which are destroyed afterwards if there is anything left."""
    made = Environment(stack_on_operator("wide"))
    made.edit(four_tenants, split(2))
    try:
        made.run("up", "--yes")
        yield made
    finally:
        if made.own.resources():
            made.run("destroy", "--yes")


def identities(cluster: Rehearsal) -> dict[str, str]:
    """The uids of the tenants' namespaces and their objects, including pods; for RayClusters also the generation."""
    api = cluster.client()
    core: Any = client.CoreV1Api(api)
    rbac: Any = client.RbacAuthorizationV1Api(api)
    network: Any = client.NetworkingV1Api(api)
    lists = {
        "pod": core.list_namespaced_pod,
        "quota": core.list_namespaced_resource_quota,
        "role": rbac.list_namespaced_role,
        "policy": network.list_namespaced_network_policy,
    }
    found: dict[str, str] = {name: core.read_namespace(name).metadata.uid for name in NAMES}
    for name in NAMES:
        for kind, items in lists.items():
            found |= {f"{kind} {name}/{each.metadata.name}": each.metadata.uid for each in items(name).items}
        ray = Rays(cluster).read(name, "training")["metadata"]
        found[f"ray cluster {name}"] = f"{ray['uid']} {ray['generation']}"
    return found


def one_command_creates_all_stacks_and_plain_pulumi_updates_only_the_platform(
    environment: Environment, shared_cluster: Rehearsal
) -> None:
    assert environment.stacks() == {"wide", "wide.tenants-01", "wide.tenants-02"}
    assert len([name for name in identities(shared_cluster) if name.startswith("pod ")]) == len(NAMES)
    assert not [each for each in environment.own.resources() if "RayCluster" in each["type"]]
    environment.own.changes_nothing()
    assert environment.changes() == set()


def workflows_approve_the_changes_of_all_stacks_and_see_drift_in_all(
    environment: Environment, core: client.CoreV1Api, tmp_path: Path
) -> None:
    def with_a_label(settings: dict[str, Any]) -> None:
        settings["tenants"][0]["labels"] = {"cost-center": "41"}

    def without(settings: dict[str, Any]) -> None:
        del settings["tenants"][0]["labels"]

    environment.edit(with_a_label)
    lines = environment.approved(tmp_path / "preview.json")
    environment.edit(without)
    assert {line.split("::")[0] for line in lines} == {f"update urn:pulumi:{_stack_of(environment, 'amber')}"}
    assert any(line.endswith("::platform-namespace-amber metadata.labels.cost-center") for line in lines), lines

    look = ("refresh", "--preview-only", "--expect-no-changes")
    label, namespaces = "pod-security.kubernetes.io/enforce", cast("Any", core)
    before = namespaces.read_namespace("amber").metadata.labels[label]
    for name in ("amber", "blue"):
        namespaces.patch_namespace(name, {"metadata": {"labels": {label: "privileged"}}})
    output = environment.run(*look, "--diff", fails=True)
    for name in ("amber", "blue"):
        namespaces.patch_namespace(name, {"metadata": {"labels": {label: before}}})
        assert f"platform-namespace-{name}" in output
        assert f'"{before}" => "privileged"' in output
        assert f"run again: ray-platform refresh wide --only {_stack_of(environment, name)}" in output
    environment.run(*look)


def _stack_of(environment: Environment, tenant: str) -> str:
    return stack_of(tenant, load(environment.own.file), environment.own.name)


def one_command_recovers_an_update_that_was_killed_in_all_stacks(
    environment: Environment, shared_cluster: Rehearsal
) -> None:
    def reached() -> bool:
        both = environment.own.locked() == {"wide.tenants-01", "wide.tenants-02"}
        time.sleep(MOMENT if both else 0)
        return both

    before = identities(shared_cluster)
    environment.edit(another_quota)
    environment.own.killed(reached, environment.start("up", "--yes"))
    refused = environment.run("up", "--yes", fails=True)
    assert refused.endswith("ray-platform recover wide\n")
    environment.run("recover", "--yes")
    assert environment.changes() == set()
    assert identities(shared_cluster) == before


def a_full_disk_loses_nothing(environment: Environment, shared_cluster: Rehearsal) -> None:
    before = identities(shared_cluster)
    environment.edit(another_quota)
    states = environment.own.states / ".pulumi"
    with small_disk(states, MEGABYTES):
        fill(states)
        assert "no space left on device" in environment.run("up", "--yes", fails=True)
        empty(states)
        assert environment.run("up", "--yes", fails=True).endswith("ray-platform recover wide\n")
        environment.run("recover", "--yes")
        environment.run("up", "--yes")
        assert environment.changes() == set()
    assert identities(shared_cluster) == before


def moving_to_one_stack_changes_no_live_object(environment: Environment, shared_cluster: Rehearsal) -> None:
    before = identities(shared_cluster)
    environment.edit(split(None))
    output = environment.own.up(fails=True).output
    assert "wide was split into 2 stacks of tenants, and is one stack in the stack file" in output
    assert "Run `ray-platform move-state wide`" in output
    environment.run("move-state", "--yes")
    assert environment.stacks() == {"wide"}
    environment.own.changes_nothing()
    environment.run("up", "--yes")
    assert identities(shared_cluster) == before


def a_killed_move_to_several_stacks_is_finished_by_the_next_run(
    environment: Environment, shared_cluster: Rehearsal
) -> None:
    before = identities(shared_cluster)
    environment.edit(split(3))
    output = environment.own.up(fails=True).output
    assert "stack wide still has amber, blue, green and 1 more, which belong to other stacks now" in output
    process = environment.start("move-state", "--yes")
    assert process.stdout
    while ": written" not in (line := process.stdout.readline()):
        assert line, "the move ended before it could be killed"
    process.kill()
    process.communicate()
    assert "belong to other stacks now" in environment.run("up", "--yes", fails=True)
    environment.run("move-state", "--yes")
    assert environment.changes() == set()
    assert identities(shared_cluster) == before
    assert "every resource is in its stack" in environment.run("move-state", "--yes")


def a_failing_tenant_does_not_stop_others_and_the_next_run_does_the_rest(environment: Environment) -> None:
    def never_ready(settings: dict[str, Any]) -> None:
        for tenant in settings["tenants"]:
            tenant["clusters"][0]["idleTimeout"] = "7m"
        head = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
        giant = {"name": "giant", "head": head, "readyTimeout": "5s"}
        settings["tenants"][0]["quota"] = {"cpu": 2000, "memory": "100Ti"}
        settings["tenants"][0]["clusters"].append({**deepcopy(settings["tenants"][0]["clusters"][0]), **giant})

    def no_giant(settings: dict[str, Any]) -> None:
        settings["tenants"][0]["clusters"].pop()

    environment.edit(never_ready)
    output = environment.run("up", "--yes", fails=True)
    assert "RayCluster amber/giant is not ready" in output
    assert "run again: ray-platform up wide --only wide.tenants-0" in output
    environment.edit(no_giant)
    assert [each["result"] for each in environment.summary("up", "--yes")] == ["done"] * len(environment.stacks())
    assert environment.changes() == set()


def all_stacks_are_destroyed_with_one_command(environment: Environment, core: client.CoreV1Api) -> None:
    environment.run("destroy", "--yes")
    there = {each.metadata.name for each in core.list_namespace().items if each.metadata}
    assert there.isdisjoint(NAMES)
    environment.edit(split(None))
    environment.run("move-state", "--yes")
    assert environment.own.resources() == []


def test_an_environment_of_several_stacks(
    environment: Environment, shared_cluster: Rehearsal, core: client.CoreV1Api, tmp_path: Path
) -> None:
    one_command_creates_all_stacks_and_plain_pulumi_updates_only_the_platform(environment, shared_cluster)
    workflows_approve_the_changes_of_all_stacks_and_see_drift_in_all(environment, core, tmp_path)
    one_command_recovers_an_update_that_was_killed_in_all_stacks(environment, shared_cluster)
    a_full_disk_loses_nothing(environment, shared_cluster)
    moving_to_one_stack_changes_no_live_object(environment, shared_cluster)
    a_killed_move_to_several_stacks_is_finished_by_the_next_run(environment, shared_cluster)
    a_failing_tenant_does_not_stop_others_and_the_next_run_does_the_rest(environment)
    all_stacks_are_destroyed_with_one_command(environment, core)
