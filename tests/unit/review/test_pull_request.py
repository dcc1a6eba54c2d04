"""The steps of the job `review` of the example workflows, run as they are, on branches of the story."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import paths
from stacks.commands.impact.sources import git
from testbed.machine import lacks
from tests.unit.review.story import checked_out, repository, written

pytestmark = pytest.mark.thorough

EXAMPLES = paths.ROOT / "docs" / "examples"


def steps() -> dict[str, dict[str, str]]:
    """The steps of GitHub's job, by the first word of their names."""
    job = yaml.safe_load((EXAMPLES / "pull-request.yaml").read_text())["jobs"]["review"]
    return {each["name"].split()[0]: each for each in job["steps"] if "name" in each}


class Runner:
    """A machine of the workflows: a checkout of the branch, with the commands, and a remote with the target branch."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self.summary = folder / "checkout", folder / "summary.md"
        self.checkout.mkdir()
        repository(self.checkout)
        git(self.checkout, "remote", "add", "origin", str(self.checkout))
        git(self.checkout, "fetch", "-q", "origin")
        (self.checkout / ".venv").symlink_to(sys.prefix)
        (self.checkout / ".git" / "info" / "exclude").write_text("/.venv\n")
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "RAY_PLATFORM_POLICIES"},
            "PYTHONPATH": str(paths.ROOT),
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        }

    def run(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Runs a script as both platforms do, which end it at its first error."""
        return subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.checkout,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    if shutil.which("jq") is None:
        lacks("not on the PATH: jq; it is in the package jq")
    return Runner(tmp_path)


@pytest.mark.parametrize(
    ("branch", "fails"),
    [("adds a tenant", set()), ("has a typo", {"Stack", "Review"}), ("renames a cluster", {"Disruption"})],
)
def test_a_branch_fails_the_steps_that_find_something(runner: Runner, branch: str, fails: set[str]) -> None:
    checked_out(runner.checkout, branch)
    done: dict[str, subprocess.CompletedProcess[str]] = {}
    for name in ("Stack", "Review", "Summary", "Disruption"):
        step = steps()[name]
        # GitHub leaves out a step after one that has failed, unless its condition is this one.
        if step.get("if") == "${{ !cancelled() }}" or not any(each.returncode for each in done.values()):
            done[name] = runner.run(step["run"])
    assert {name for name, each in done.items() if each.returncode} == fails, done
    comment = written(branch).read_text().replace("--base main", "--base origin/main")
    assert runner.summary.read_text() == (runner.checkout / "review.md").read_text() == comment
    assert done["Stack"].stdout.startswith("::error file=Pulumi.staging.yaml,line=") == ("Stack" in fails)


def test_gitlab_has_the_same_comment(runner: Runner) -> None:
    checked_out(runner.checkout, "takes an image of anybody")
    job: dict[str, Any] = yaml.safe_load((EXAMPLES / "gitlab-ci.yaml").read_text())["review"]
    done = runner.run("\n".join(job["script"]))
    assert done.returncode == 1, done
    comment = written("takes an image of anybody").read_text().replace("--base main", "--base FETCH_HEAD")
    assert (runner.checkout / "review.md").read_text() == comment


def test_a_label_or_a_harmless_change_passes_the_step_on_disruption(runner: Runner) -> None:
    step = steps()["Disruption"]
    assert step["if"] == "${{ !contains(github.event.pull_request.labels.*.name, 'disruption is meant') }}"
    checked_out(runner.checkout, "edits a page")
    done = runner.run(step["run"])
    assert (done.returncode, done.stdout) == (0, "true\n")
    assert json.loads((runner.checkout / "review.json").read_text())["stacks"] == []


def test_manifests_beside_the_stack_are_held_to_the_policies(runner: Runner) -> None:
    folder = runner.checkout / "manifests"
    folder.mkdir()
    body = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "by-hand", "namespace": "team-a"},
        "spec": {
            "headGroupSpec": {
                "template": {"spec": {"hostNetwork": True, "containers": [{"name": "ray-head", "image": "ray:latest"}]}}
            }
        },
    }
    (folder / "cluster.yaml").write_text(yaml.safe_dump(body))
    done = runner.run(steps()["Policies"]["run"])
    assert done.returncode == 1
    assert "::error file=manifests/cluster.yaml,line=" in done.stdout
