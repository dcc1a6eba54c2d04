"""The wheel in somebody else's program, as docs/package.md has it: examples/python, outside the checkout; and a program
that also creates the Kubernetes cluster."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from local import paths, tools
from local.plugins import Selection
from local.rehearsal import Rehearsal
from testbed.harness import Project
from testbed.platform_stack import Rays, existing

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(900)]

PAGE = paths.ROOT / "docs" / "package.md"

EXAMPLE = Path("examples") / "python"

WITH_CLUSTER = Path(__file__).parent / "programs" / "with_cluster.py"


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The variables with which git finds KubeRay's repository on this machine instead of on GitHub."""
    folder = tmp_path_factory.mktemp("github")
    repository = folder / "ray-project" / "kuberay"
    shutil.copytree(tools.KUBERAY.share("config"), repository / "ray-operator" / "config")
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.com")
    for command in (["init"], ["add", "."], [*who, "commit", "--message=release"], ["tag", tools.KUBERAY.version]):
        subprocess.run(["git", *command], cwd=repository, check=True, capture_output=True)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{folder}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }


@pytest.fixture(scope="module")
def program(
    tmp_path_factory: pytest.TempPathFactory, github: Mapping[str, str], cluster: Rehearsal, plugins: Selection
) -> Project:
    """The example, copied with the wheel to where there is no checkout, and installed as its page describes."""
    folder = tmp_path_factory.mktemp("elsewhere")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "dist")]
    subprocess.run(build, cwd=paths.ROOT, check=True, capture_output=True)
    shutil.copytree(paths.ROOT / EXAMPLE, folder / EXAMPLE, ignore=shutil.ignore_patterns(".venv", "__pycache__"))
    install(folder / EXAMPLE)
    made = Project.existing(folder / EXAMPLE, folder, plugins)
    kubectl = tools.KUBERNETES.program("kubectl").parent
    made.environment |= {
        **github,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": os.pathsep.join([str(kubectl), os.environ["PATH"]]),
        "RAY_PLATFORM_CACHE": str(folder / "cache"),
    }
    return made


def install(folder: Path) -> None:
    """Makes the project's environment. Packages of an index are those of the test's own environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=folder, check=True)
    (packages,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    (packages / "index.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", ".venv", "install", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--requirement", "requirements.txt"], cwd=folder, check=True, capture_output=True)


def test_the_example_and_the_program_on_the_page_describe_the_same_platform(program: Project) -> None:
    """What such a program creates shows the next test, which also gives it a cluster."""

    def described() -> list[tuple[str, str]]:
        shown = program.pulumi("preview").output
        assert "dashboard" in shown
        return re.findall(r"\+\s+(\S+) (\S+) create", shown)

    example = described()
    assert ("kubernetes:ray.io/v1:RayCluster", "team-a/training-ray-cluster") in example
    (page,) = re.findall(r"^    import pulumi\n(?:    .*\n|\n)+", PAGE.read_text(), re.MULTILINE)
    (program.folder / "ray_on_kubernetes.py").write_text(textwrap.dedent(page))
    assert sorted(described()) == sorted(example)


@pytest.fixture(scope="module")
def with_cluster(program: Project, cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A program that also creates the cluster: no kubeconfig leads to it but that resource's output."""
    folder = program.folder.parent / "with-cluster"
    shutil.copytree(program.folder, folder, symlinks=True, ignore=shutil.ignore_patterns("Pulumi.*.yaml"))
    shutil.copy(WITH_CLUSTER, folder / "ray_on_kubernetes.py")
    (folder / "Pulumi.yaml").write_text((folder / "Pulumi.yaml").read_text().replace("my-platform", "with-cluster"))
    made = Project(folder, program.environment)
    made.environment |= {"KUBECONFIG": os.devnull}
    made.pulumi("stack", "init", "test")
    made.pulumi("config", "set", "kubeconfig", str(cluster.kubeconfig))
    return made


def one_program_creates_the_cluster_and_the_platform(with_cluster: Project, rays: Rays, cluster: Rehearsal) -> None:
    first = with_cluster.pulumi("preview").output
    assert "warning" not in first
    assert with_cluster.resources() == []
    assert not {name for name in existing(cluster) if "ray" in name}
    with_cluster.up()
    assert rays.read("team-a", "training")["status"]["state"] == "ready"
    assert with_cluster.outputs()["clusters"]["team-a/training"]["state"] == "ready"
    assert with_cluster.outputs()["kubernetes"]["cluster"]


def its_kubeconfig_is_a_secret_in_the_state(with_cluster: Project) -> None:
    assert "current-context" not in str(with_cluster.resources())
    [provider] = [each for each in with_cluster.resources() if each["type"] == "pulumi:providers:kubernetes"]
    assert any("Kubernetes::cluster" in each for each in provider["dependencies"])


def another_token_replaces_nothing(with_cluster: Project) -> None:
    with_cluster.pulumi("config", "set", "comment", "rotated")
    shown = with_cluster.pulumi("preview").output
    assert "replace" not in shown
    assert "delete" not in shown
    with_cluster.up()
    with_cluster.changes_nothing()


def its_destroy_leaves_nothing(with_cluster: Project, cluster: Rehearsal) -> None:
    with_cluster.pulumi("destroy", "--yes", "--skip-preview")
    assert with_cluster.resources() == []
    assert not {name for name in existing(cluster) if "ray" in name or "team-a" in name}


def the_platform_reports_that_the_cluster_was_not_created(with_cluster: Project) -> None:
    with_cluster.pulumi("config", "set", "kubeconfig", "/nowhere")
    shown = with_cluster.pulumi("up", "--yes", "--skip-preview", fails=True).output
    assert "No such file or directory: '/nowhere'" in shown
    assert "ray_platform" not in shown


def test_a_program_creates_a_cluster_and_the_platform_and_destroys_both(
    with_cluster: Project, rays: Rays, cluster: Rehearsal
) -> None:
    one_program_creates_the_cluster_and_the_platform(with_cluster, rays, cluster)
    its_kubeconfig_is_a_secret_in_the_state(with_cluster)
    another_token_replaces_nothing(with_cluster)
    its_destroy_leaves_nothing(with_cluster, cluster)
    the_platform_reports_that_the_cluster_was_not_created(with_cluster)
