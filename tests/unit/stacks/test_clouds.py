"""The stack files of docs/clouds.md: each is valid and fits its nodes, and the page has what selects the nodes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from local import paths
from stacks.__main__ import app
from stacks.load import load

pytestmark = pytest.mark.unit

FILES = sorted((paths.ROOT / "examples" / "clouds").glob("Pulumi.*.yaml"))

PAGE = (paths.ROOT / "docs" / "clouds.md").read_text()


def test_there_is_one_for_each_cloud() -> None:
    assert [file.name.split(".")[1] for file in FILES] == ["aks", "eks", "gke", "openshift"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_it_is_valid_and_fits_its_nodes(file: Path) -> None:
    checked = CliRunner().invoke(app, ["check", str(file)])
    assert "no findings" in checked.output
    planned = CliRunner().invoke(app, ["plan", str(file)])
    assert planned.exit_code == 0
    assert "All tenants can have their greatest number of GPUs at once." in planned.output


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_workers_go_to_tainted_nodes_of_the_cloud_and_heads_to_others(file: Path) -> None:
    gpu, system = load(file).nodes
    assert (gpu.gpus, system.gpus) == (8, 0)
    assert gpu.taints
    assert not system.taints
    for label in {**gpu.labels, **system.labels}:
        assert label in PAGE or label.startswith("node-role.kubernetes.io/")
