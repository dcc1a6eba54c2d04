"""`ray-platform impact`: its comparison, its output, and its exit codes."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from components.cluster import ClusterUnreachableError
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster
from tests.unit.review.story import commit

STACK = """\
config:
  ray-platform:nodes:
    - {pool: a100, count: 2, cpu: 64, memory: 1000Gi, gpus: 8}
  ray-platform:tenants:
    - name: team-a
      clusters:
        - {name: training, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0", workers: {pool: a100}, idleTimeout: 5m}
"""
HARMLESS = STACK.replace("5m", "6m")
HARMFUL = STACK.replace("name: training", "name: research")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, in_memory: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of git with a stack file in it, and no cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    in_memory.fail(ClusterUnreachableError("no usable kubeconfig"))
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=tmp_path, check=True)
    commit(tmp_path, "first")
    return tmp_path


impact = partial(stacks, "impact")


def test_an_edit_is_compared_with_what_is_committed(folder: Path) -> None:
    assert (impact("--to", "prod").exit_code, "The edit affects nothing" in impact("--to", "prod").stdout) == (0, True)
    (folder / "Pulumi.prod.yaml").write_text(HARMLESS)
    done = impact("--to", "prod")
    assert done.exit_code == 0
    assert "the autoscaler applies the new idle timeout" in done.stdout
    assert "The edit disrupts nothing that runs." in done.stdout


def test_harm_ends_with_1_unless_it_is_allowed(folder: Path) -> None:
    (folder / "Pulumi.prod.yaml").write_text(HARMFUL)
    done = impact("--from", "main", "--to", "prod")
    assert done.exit_code == 1
    assert "Disrupts what runs: RayCluster team-a/training." in done.stdout
    assert impact("--from", "main", "--to", "prod", "--allow-disruption").exit_code == 0


def test_files_are_compared_and_written_for_programs_and_pull_requests(folder: Path) -> None:
    (folder / "new.yaml").write_text(HARMFUL)
    arguments = ("--from", "Pulumi.prod.yaml", "--to", "new.yaml")
    output = json.loads(impact(*arguments, "--format", "json").stdout)
    assert (output["verdict"], output["hurts"]) == ("deletes", True)
    [gone] = [each for each in output["objects"] if each["name"] == "team-a/training" and each["kind"] == "RayCluster"]
    assert gone["effects"][0]["podsEnded"]["least"] == 1
    assert "| RayCluster team-a/training | deletes |" in impact(*arguments, "--format", "markdown").stdout


def test_a_stack_that_is_new_is_all_new(folder: Path) -> None:
    (folder / "Pulumi.new.yaml").write_text(STACK)
    done = impact("--to", "new")
    assert done.exit_code == 0
    assert "RayCluster team-a/training: is created" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--from", "nowhere", "--to", "prod"), "'nowhere' is neither a file nor a revision of git here"),
        (("--to", "missing"), "Pulumi.missing.yaml"),
        (("--from", "live", "--to", "prod"), "the cluster cannot be read with the current context"),
        (("--from", "wrong.yaml", "--to", "prod"), "wrong.yaml"),
    ],
)
def test_wrong_use_ends_with_2_and_one_message(folder: Path, arguments: tuple[str, ...], text: str) -> None:
    (folder / "wrong.yaml").write_text("config: {ray-platform:tenants: 1}\n")
    done = impact(*arguments)
    assert done.exit_code == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_link_is_compared_with_what_it_led_to(folder: Path) -> None:
    (folder / "environments").mkdir()
    real = (folder / "Pulumi.prod.yaml").rename(folder / "environments" / "prod.yaml")
    (folder / "Pulumi.prod.yaml").symlink_to("environments/prod.yaml")
    assert impact("--to", "prod").exit_code == 0
    commit(folder, "all")
    real.write_text(HARMFUL)
    done = impact("--to", "prod")
    assert "Disrupts what runs: RayCluster team-a/training." in done.stdout


def test_a_file_that_was_no_utf_8_is_an_error(folder: Path) -> None:
    (folder / "Pulumi.prod.yaml").write_bytes(b"# caf\xe9\n" + STACK.encode())
    commit(folder, "all")
    (folder / "Pulumi.prod.yaml").write_text(STACK)
    done = impact("--to", "prod")
    assert (done.exit_code, done.stderr) == (2, "HEAD:Pulumi.prod.yaml: is not UTF-8 there\n")
