"""The scripts of the example workflows, run as they are: from a commit to `up`, a stale approval, drift.

What a review reports about a change is tested in tests/unit/review.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from local import paths
from stacks.commands.impact.sources import git
from stacks.commands.review.comment import MARKER
from testbed.harness import Result
from testbed.platform_stack import Stack, training
from tests.engine.conftest import MakeStack
from tests.unit.review.story import commit

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(900)]

EXAMPLES = paths.ROOT / "docs" / "examples"

GITHUB, GITLAB = "apply-stack.yaml", "gitlab-ci.yaml"


def script(file: str, step: str) -> str:
    """The script of a step of a workflow of GitHub, or of a job of GitLab."""
    content: dict[str, Any] = yaml.safe_load((EXAMPLES / file).read_text())
    if file == GITLAB:
        return "\n".join(content[step]["script"])
    steps = (each for job in content["jobs"].values() for each in job["steps"])
    (found,) = (each["run"] for each in steps if each.get("name", "") == step)
    return str(found)


def on_the_nodes_network(settings: dict[str, Any]) -> None:
    """The tenant's Pod Security allows it, and a mandatory policy does not."""
    settings["tenants"][0]["podSecurity"] = "privileged"
    training(settings)["head"] = {"podTemplate": {"spec": {"hostNetwork": True}}}


def not_on_the_nodes_network(settings: dict[str, Any]) -> None:
    del settings["tenants"][0]["podSecurity"], training(settings)["head"]


class Runner:
    """A machine of the workflows: a checkout of the commit, and the secrets of the environment."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.checkout = stack, folder / "checkout"
        self.checkout.mkdir()
        for each in paths.ROOT.iterdir():
            if each.name != ".git":
                (self.checkout / each.name).symlink_to(each)
        git(self.checkout, "init", "-q")
        self._environment = {
            **stack.environment,
            "STACK": stack.name,
            "CONFIG": Path(stack.environment["KUBECONFIG"]).read_text(),
            "RUNNER_TEMP": str(folder),
            "KUBECONFIG": str(folder / "kubeconfig"),
            "GITHUB_ENV": str(folder / "variables"),
            "CI_BUILDS_DIR": str(folder),
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }

    def commit(self) -> None:
        """Commits the stack file, to the target branch of the next pull request."""
        shutil.copy(self.stack.file, self.checkout)
        commit(self.checkout, "merged")
        git(self.checkout, "update-ref", "refs/remotes/origin/main", "HEAD")

    def run(self, file: str, step: str) -> Result:
        """Runs a step as GitHub and GitLab do, which end a script at its first error."""
        command = ["bash", "-e", "-c", script(file, step)]
        done = subprocess.run(
            command, cwd=self.checkout, env=self._environment, capture_output=True, text=True, check=False
        )
        return Result(step, done.returncode, done.stdout + done.stderr, 0.0)

    def preview(self, file: str) -> None:
        """The step whose log somebody approves."""
        done = self.run(file, {GITHUB: "Preview", GITLAB: ".preview"}[file])
        assert done.code == 0, done.output

    def update(self, file: str) -> Result:
        """The step after the approval."""
        update = "Update, if the approved changes are still those of a preview"
        return self.run(file, {GITHUB: update, GITLAB: ".up"}[file])

    @property
    def approved(self) -> list[str]:
        """The approved changes."""
        return (self.checkout / "approved.txt").read_text().splitlines()


@pytest.fixture
def runner(stack_on_operator: MakeStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """A stack that the workflow has created."""
    stack = stack_on_operator("workflows")
    made = Runner(stack, tmp_path_factory.mktemp("runner"))
    made.preview(GITHUB)
    done = made.update(GITHUB)
    assert done.code == 0, done.output
    yield made
    stack.destroy()


def a_stack_that_nobody_changed_has_no_drift(runner: Runner) -> None:
    assert runner.run("drift.yaml", "Look").code == 0
    assert (runner.checkout.parent / "variables").read_text() == "CODE=0\n"


def a_pull_request_has_the_preview_in_its_summary(runner: Runner) -> None:
    runner.commit()
    runner.stack.edit(lambda settings: training(settings).update(idleTimeout="75s"))
    shutil.copy(runner.stack.file, runner.checkout)
    done = runner.run("pull-request.yaml", "Preview, held to the policies")
    assert done.code == 0, done.output
    summary = (runner.checkout.parent / "summary.md").read_text()
    assert summary.startswith(f"{MARKER}\n")
    assert "- **Preview**: 2 to update\n" in summary  # the RayCluster, and the wait for it
    assert "| kubernetes:ray.io/v1:RayCluster team-a/training-ray-cluster | update | " in summary
    runner.stack.edit(on_the_nodes_network)
    done = runner.run("pull-request.yaml", "Preview, held to the policies")
    assert done.code == 1
    assert "  pod-no-host  (" in done.output
    runner.stack.edit(not_on_the_nodes_network)


def what_was_approved_is_applied(runner: Runner) -> None:
    runner.stack.edit(lambda settings: training(settings).update(idleTimeout="90s"))
    runner.preview(GITLAB)
    (cluster,) = (each for each in runner.approved if "::team-a/training-ray-cluster " in each)
    assert cluster.startswith("update urn:pulumi:workflows::")
    assert cluster.split()[-1] == "spec.autoscalerOptions.idleTimeoutSeconds"
    done = runner.update(GITLAB)
    assert done.code == 0, done.output


def an_update_whose_runner_was_lost_is_continued(runner: Runner) -> None:
    assert script(GITLAB, "recover").replace("$RECOVER", "$STACK") in script("recover.yaml", "Recover")
    runner.stack.edit(lambda settings: settings["tenants"][0].update(labels={"cost-center": "41"}))
    runner.stack.killed(lambda: bool(runner.stack.locked()))
    assert "the stack is currently locked" in runner.stack.up(fails=True).output
    done = runner.run("recover.yaml", "Recover")
    assert done.code == 0, done.output
    runner.preview(GITHUB)
    assert runner.approved == []


def an_approval_is_stale_after_another_update(runner: Runner) -> None:
    runner.stack.edit(lambda settings: training(settings).update(idleTimeout="120s"))
    runner.preview(GITHUB)
    runner.stack.edit(lambda settings: settings["tenants"][0].update(labels={"cost-center": "42"}))
    for file in (GITHUB, GITLAB):
        done = runner.update(file)
        assert done.code == 1
        assert "> update urn:pulumi:workflows::" in done.output
        assert "Updating" not in done.output


def drift_is_reported_with_names_and_without_values(runner: Runner, core: client.CoreV1Api) -> None:
    core.patch_namespace("team-a", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
    found = runner.run("drift.yaml", "Look")
    assert found.code == 0
    assert (runner.checkout.parent / "variables").read_text().splitlines()[-1] != "CODE=0"
    assert "platform-namespace-team-a" in found.output
    assert "privileged" not in found.output


def test_a_stack_is_changed_by_the_workflows(runner: Runner, core: client.CoreV1Api) -> None:
    a_stack_that_nobody_changed_has_no_drift(runner)
    a_pull_request_has_the_preview_in_its_summary(runner)
    what_was_approved_is_applied(runner)
    an_update_whose_runner_was_lost_is_continued(runner)
    an_approval_is_stale_after_another_update(runner)
    drift_is_reported_with_names_and_without_values(runner, core)
