"""Definitions are removed from a state of an earlier release, without an effect on them and on their objects.

The earlier release comes from the repository's history, so a clone without it cannot run these tests.
"""

import base64
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from components.crds.guard import CrdGuardProvider
from local import paths
from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, Stack
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.suite("moved definitions"), pytest.mark.timeout(1500)]

BEFORE = "75c9081"
"""The last commit in which each definition was a resource."""

PROGRAM = ("Pulumi.yaml", "__main__.py", "stacks", "components", "policies")
"""The files of its program; the stand-ins for Pulumi's plugins are those of this checkout."""

DEFINITION = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
GUARDS = "pulumi-python:dynamic/ray-platform:"


def with_volcano(settings: dict[str, Any]) -> None:
    settings["scheduler"] = {"volcano": {}}


@pytest.fixture(scope="module")
def earlier_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the earlier release, with the packages of this one."""
    folder = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "archive", BEFORE, *PROGRAM], cwd=paths.ROOT, capture_output=True, check=False)
    assert archive.returncode == 0, f"the clone lacks commit {BEFORE}: run `git fetch --unshallow`. {archive.stderr!r}"
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture(scope="module")
def moved(stack: MakeStack, earlier_release: Path) -> Iterator[Stack]:
    """A stack that the earlier release has created. The tests use it one after the other, in their order."""
    made = stack("moved")
    made.edit(with_volcano)
    # States of that release are nine megabytes, which each command reads and compares.
    made.seconds = 600.0
    made.folder = earlier_release
    made.up()
    made.folder = paths.ROOT
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def uids(moved: Stack, cluster: Rehearsal, rays: Rays) -> dict[str, str]:
    """The uids of the definitions, the RayCluster and its pods, as the earlier release has created them."""
    return living(cluster)


def living(cluster: Rehearsal) -> dict[str, str]:
    api = cluster.client()
    found: Any = client.ApiextensionsV1Api(api).list_custom_resource_definition()
    pods: Any = client.CoreV1Api(api).list_namespaced_pod("team-a")
    custom = client.CustomObjectsApi(api)
    rays: Any = custom.list_namespaced_custom_object("ray.io", "v1", "team-a", "rayclusters")
    named = {f"{each.metadata.name}": each.metadata.uid for each in (*found.items, *pods.items)}
    return {**named, **{each["metadata"]["name"]: each["metadata"]["uid"] for each in rays["items"]}}


def rows(stack: Stack) -> list[dict[str, Any]]:
    return [each for each in stack.resources() if each["type"] == DEFINITION]


def test_guards_in_the_state_are_still_loaded(moved: Stack) -> None:
    """A destroy runs no program: Pulumi's plugin loads the providers in the state by the names of their modules."""
    guards = [each for each in moved.resources() if each["type"].startswith(GUARDS) and "CrdGuard" in each["type"]]
    assert {each["type"].removeprefix(GUARDS) for each in guards} == {"CrdGuard", "VolcanoCrdGuard"}
    for guard in guards:
        provider = pickle.loads(base64.b64decode(guard["outputs"]["__provider"]))  # noqa: S301 -- this stack's own state
        assert isinstance(provider, CrdGuardProvider)


def test_the_first_update_marks_the_definitions(moved: Stack, uids: dict[str, str], cluster: Rehearsal) -> None:
    assert len(rows(moved)) == 15
    output = moved.up().output
    assert "the next `pulumi up` removes them from the state" in output
    assert all(row["retainOnDelete"] for row in rows(moved))
    assert living(cluster) == uids


def test_the_second_update_removes_them_from_the_state(moved: Stack, uids: dict[str, str], cluster: Rehearsal) -> None:
    assert "they are retained in the cluster" in moved.pulumi("up", "--yes").output  # with its preview
    assert rows(moved) == []
    assert living(cluster) == uids
    (operators,) = (each for each in moved.resources() if each["urn"].endswith("::platform-kuberay-crds"))
    assert len(operators["outputs"]["definitions"]) == 4
    assert len(json.dumps(moved.resources())) < 600_000


def test_the_third_update_has_nothing_to_do(moved: Stack) -> None:
    moved.changes_nothing()
    moved.changes_nothing(refreshed=True)
