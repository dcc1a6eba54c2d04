"""The stack files of docs/clouds.md and docs/tutorial.md are valid, fit their nodes, and violate no mandatory rule."""

import re
from pathlib import Path

import pytest

from local import paths
from policies.configuration import Configuration
from stacks.commands.review.reviewed import judged
from stacks.load import load
from testbed.commands import stacks

FILES = sorted((paths.ROOT / "examples" / "clouds").glob("Pulumi.*.yaml"))

FITS = "All tenants can have their maximum number of GPUs at once."

PAGE = (paths.ROOT / "docs" / "clouds.md").read_text()


def test_there_is_one_for_each_cloud() -> None:
    assert [file.name.split(".")[1] for file in FILES] == ["aks", "eks", "gke", "openshift"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_it_is_valid_and_fits_its_nodes(file: Path) -> None:
    checked = stacks("check", str(file))
    assert "no findings" in checked.output
    planned = stacks("plan", str(file))
    assert planned.exit_code == 0
    assert FITS in planned.output
    assert judged(Configuration(), file.name.split(".")[1], None, load(file)).blocking == ()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_workers_go_to_tainted_nodes_of_the_cloud_and_heads_to_others(file: Path) -> None:
    gpu, system = load(file).nodes
    assert (gpu.gpus, system.gpus) == (8, 0)
    assert gpu.taints
    assert not system.taints
    for label in {**gpu.labels, **system.labels}:
        assert label in PAGE or label.startswith("node-role.kubernetes.io/")


def test_the_file_of_the_tutorial_is_valid_and_its_error_is_found(tmp_path: Path) -> None:
    tutorial = (paths.ROOT / "docs" / "tutorial.md").read_text()
    [block] = re.findall(r"```yaml\n(.*?)```", tutorial, re.DOTALL)
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text(block)
    planned, paged = (stacks(command, str(file)) for command in ("plan", "page"))
    for line in ("All 2 RayClusters can start at once.", FITS, "Largest gang: 24 GPUs, by vision/training"):
        assert line in tutorial
        assert line in planned.output
        assert line in paged.output
    file.write_text(block.replace("gpus: 24", "gpu: 24"))
    found = stacks("check", str(file))
    error = "9:15: ray-platform:tenants[0].quota.gpu: unknown key 'gpu': did you mean 'gpus'?"
    assert error in found.output
    assert error in tutorial
