"""`ray-platform render`: kubectl applies the files to a real API server, and they are what `up` makes. And the
identity of a stack's cluster: another one is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.rollout.templates import unstamped
from local import paths
from local.rehearsal import Rehearsal
from local.tools import KUBERAY
from stacks.commands.render.stages import STAGES
from testbed.kubectl import Kubectl
from testbed.platform_stack import Stack
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

OTHER = "77777777-2222-4c1e-9d0a-3a2b1c0d9e8f"

Objects = dict[tuple[str, str, str], dict[str, Any]]

BY_THE_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")

WITH_STATUS = {
    *("CustomResourceDefinition", "Deployment", "Namespace", "PodDisruptionBudget", "RayCluster", "Service"),
    "ValidatingAdmissionPolicy",
}
"""Kinds that a controller writes to as well, so that their resourceVersion changes."""


@pytest.fixture(scope="module")
def plain(stack: MakeStack) -> Stack:
    """The dev stack, before any `up`."""
    made = stack("plain")
    made.edit(with_a_tree)
    return made


def with_a_tree(settings: dict[str, Any]) -> None:
    """KubeRay's manifests are read from a folder."""
    settings["operator"]["location"] = str(KUBERAY.share("config") / "default")


@pytest.fixture(scope="module")
def folder(plain: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stack's manifests."""
    made = tmp_path_factory.mktemp("manifests") / "plain"
    command = [sys.executable, "-m", "stacks", "render", str(plain.file), "-o", str(made)]
    subprocess.run(command, env=plain.environment, check=True)
    return made


@pytest.fixture(scope="module")
def stages(folder: Path) -> list[Path]:
    return [folder / stage for stage in STAGES if (folder / stage).is_dir()]


@pytest.fixture(scope="module")
def kubectl(cluster: Rehearsal) -> Kubectl:
    return Kubectl(cluster)


def apply(kubectl: Kubectl, stages: list[Path]) -> None:
    """As the README of the folder has it: each stage after the one before it is ready."""
    for stage in stages:
        kubectl.does("apply", "--server-side", "-k", str(stage))
        if stage.name.endswith("definitions"):
            kubectl.until_established()
        if stage.name.endswith("operator"):
            operator = ("--namespace=ray-system", "deployment/kuberay-operator")
            kubectl.does("wait", "--for=condition=Available", "--timeout=300s", *operator)
    ready = "--for=jsonpath={.status.state}=ready"
    kubectl.does("wait", ready, "--timeout=300s", "--namespace=team-a", "raycluster/training")


def live(kubectl: Kubectl, stages: list[Path]) -> Objects:
    """The objects of the stages, as the API server has them."""
    found = [json.loads(kubectl.does("get", "-k", str(stage), "-o", "json")) for stage in stages]
    bodies = [body for each in found for body in each["items"]]
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in bodies}


def desired(body: dict[str, Any]) -> dict[str, Any]:
    """The object without what the API server and controllers write, and without the annotations that docs/manifests.md
    lists as different."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in BY_THE_SERVER}
    metadata.pop("annotations", None)
    spec = body.get("spec")
    if body["kind"] == "RayCluster":
        spec = unstamped(body["spec"])
    if body["kind"] == "Service":
        spec = {key: value for key, value in body["spec"].items() if not key.startswith("clusterIP")}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata, "spec": spec}


def test_kubectl_applies_and_deletes_what_up_makes(plain: Stack, kubectl: Kubectl, stages: list[Path]) -> None:
    if plain.resources():
        plain.destroy()
    apply(kubectl, stages)
    applied = live(kubectl, stages)
    applying_them_again_changes_nothing(kubectl, stages, applied)
    they_are_deleted_in_reverse_order_and_are_what_up_makes(plain, kubectl, stages, applied)


def applying_them_again_changes_nothing(kubectl: Kubectl, stages: list[Path], applied: Objects) -> None:
    apply(kubectl, stages)
    again = live(kubectl, stages)
    assert {key: desired(body) for key, body in again.items()} == {key: desired(each) for key, each in applied.items()}
    versions = {key: each["metadata"]["resourceVersion"] for key, each in applied.items() if key[0] not in WITH_STATUS}
    assert len(versions) >= 20
    assert {key: again[key]["metadata"]["resourceVersion"] for key in versions} == versions


def they_are_deleted_in_reverse_order_and_are_what_up_makes(
    plain: Stack, kubectl: Kubectl, stages: list[Path], applied: Objects
) -> None:
    for stage in reversed(stages):
        kubectl.does("delete", "--timeout=300s", "-k", str(stage))
    plain.up()
    made = live(kubectl, stages)
    assert {key: desired(body) for key, body in applied.items()} == {key: desired(each) for key, each in made.items()}


@pytest.fixture
def configuration(plain: Stack) -> Iterator[Path]:
    """The file that Pulumi reads, which a test may change, after `pulumi up`."""
    plain.settle(with_a_tree)
    file = Path(plain.environment["PULUMI_OPTION_CONFIG_FILE"])
    before = file.read_text()
    yield file
    file.write_text(before)


def test_the_stack_belongs_to_the_cluster_of_its_first_update(
    plain: Stack, kubectl: Kubectl, configuration: Path
) -> None:
    uid = kubectl.does("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    assert plain.outputs()["kubernetes"] == {"cluster": uid}
    content = json.loads(configuration.read_text())
    content["config"]["ray-platform:kubernetes"] = {"cluster": OTHER}
    configuration.write_text(json.dumps(content))
    refused = [
        *(plain.pulumi(*command, fails=True).output for command in (["preview"], ["up", "--yes", "--skip-preview"])),
        plain.recover(fails=True).output,
    ]
    for operation in ("refresh", "destroy"):
        command = [sys.executable, "-m", "stacks", operation, plain.name, f"--config-file={configuration}", "--yes"]
        done = subprocess.run(command, env=plain.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        refused.append(done.stderr)
    assert all(f"leads to a cluster with UID {uid}" in " ".join(each.split()) for each in refused), refused
    assert kubectl.does("get", "raycluster", "-A", "-o", "name")


def test_the_program_reads_a_base_that_pulumi_does_not_know(plain: Stack, configuration: Path, tmp_path: Path) -> None:
    """The same settings, all of them in a base, change nothing."""
    content = json.loads(configuration.read_text())
    base = tmp_path / "base.yaml"
    base.write_text(json.dumps({"config": content["config"]}))
    extends = {"ray-platform:extends": os.path.relpath(base, paths.ROOT)}
    configuration.write_text(json.dumps({**content, "config": extends}))
    plain.pulumi("preview", "--expect-no-changes")
    base.write_text(json.dumps({"config": {"ray-platform:operator": {"replicas": 9}}}))
    refused = plain.pulumi("preview", fails=True).output
    assert "base.yaml:1:" in refused
    assert "9 is not allowed" in refused
