"""The parts of the real node that are decided before it starts."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local import paths
from local.errors import RehearsalError
from local.images import OPERATOR, RAY, full_name
from local.real_node import RealNode, node, requirements
from local.real_node.box import Box
from local.rehearsal import Rehearsal
from stacks.load import load
from stacks.objects.stack import images_of


@pytest.mark.parametrize(
    ("reference", "full"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0"),
        ("quay.io/kuberay/operator:v1.6.2", "quay.io/kuberay/operator:v1.6.2"),
        ("localhost/pause:1", "localhost/pause:1"),
        ("registry:5000/ray", "registry:5000/ray"),
    ],
)
def test_an_image_has_the_name_that_a_node_gives_it(reference: str, full: str) -> None:
    assert full_name(reference) == full


@pytest.mark.parametrize("stack", ["dev", "pods"])
def test_the_stacks_for_one_node_find_their_images(stack: str, tmp_path: Path, machine_is_fit: None) -> None:
    """The production stack is for many nodes, and has a Volcano that the real node does not."""
    RealNode(tmp_path).check(images_of(load(paths.ROOT / f"Pulumi.{stack}.yaml")))


def test_an_image_that_the_node_does_not_have_is_refused(tmp_path: Path, machine_is_fit: None) -> None:
    with pytest.raises(
        RehearsalError, match=r"image quay\.io/kuberay/operator:v1\.6\.1 does not exist here"
    ) as refused:
        RealNode(tmp_path).check(["quay.io/kuberay/operator:v1.6.1"])
    assert OPERATOR.reference in str(refused.value)
    assert RAY.reference in str(refused.value)


def test_one_message_names_all_unmet_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda program: None if program in ("nft", "ctr") else "x")
    with pytest.raises(RehearsalError) as refused:
        RealNode(tmp_path).check([])
    assert str(refused.value).splitlines() == [
        "the real node cannot run here:",
        "  it needs root, for namespaces, mounts and cgroups: run the command as root",
        "  programs are missing (ctr, nft): on Debian and Ubuntu "
        "`apt-get install --no-install-recommends containerd nftables`",
    ]


def test_continuous_integration_installs_missing_packages(tmp_path: Path) -> None:
    """The packages of missing programs, and no others: Docker's containerd excludes Debian's."""
    for program in ("containerd", "ctr"):
        (tmp_path / program).touch(mode=0o755)
    asked = re.search(r'python -c "(.*absent.*)"', (paths.ROOT / ".ci" / "run").read_text())
    assert asked is not None
    command = [sys.executable, "-c", asked[1]]
    environment = {"PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=paths.ROOT, env=environment, capture_output=True, text=True, check=True)
    installed = set(done.stdout.split())
    assert {"runc", "nftables", "util-linux"} <= installed <= set(requirements.PACKAGES) - {"containerd"}


def test_boxes_of_two_folders_share_neither_names_nor_addresses() -> None:
    one, other = Box(Path("/one")), Box(Path("/other"))
    assert not {one.cable, one.cgroup, one.inside, one.outside} & {
        other.cable,
        other.cgroup,
        other.inside,
        other.outside,
    }
    assert one.inside == Box(Path("/one")).inside


def test_a_rehearsal_remembers_its_kind_of_nodes(tmp_path: Path) -> None:
    assert Rehearsal(tmp_path).kind == "simulated"
    (tmp_path / "nodes").write_text("real")
    assert Rehearsal(tmp_path).kind == "real"
    with pytest.raises(RehearsalError, match="has real nodes, not simulated ones: leave NODES out"):
        Rehearsal(tmp_path, "simulated")


@pytest.fixture
def machine_is_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "unmet", list)
