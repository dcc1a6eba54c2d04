"""The workflows that call the review: their platforms accept them, their commands exist, and their steps are run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import paths
from local.install import install_missing
from local.tools import ACTIONLINT
from stacks.commands.impact.sources import git
from stacks.commands.review.comment import MARKER
from testbed.machine import lacks
from tests.unit.review.story import checked_out, repository, written
from tests.unit.test_docs import PYTHON, wrong_in_command

pytestmark = pytest.mark.thorough

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"

GITLAB = EXAMPLES / "gitlab-ci.yaml"
WORKFLOWS = sorted({*EXAMPLES.glob("*.yaml")} - {GITLAB})


def validate(*arguments: str | Path) -> str:
    """The errors by a schema of schemastore.org, which check-jsonschema includes."""
    command = [sys.executable, "-m", "check_jsonschema", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout


def test_the_platforms_accept_them() -> None:
    assert validate("--builtin-schema", "vendor.github-workflows", *WORKFLOWS) == ""
    assert validate("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", GITLAB) == ""


def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    install_missing((ACTIONLINT,))
    folder = tmp_path / ".github" / "workflows"  # where workflows call each other
    folder.mkdir(parents=True)
    for each in WORKFLOWS:
        shutil.copy(each, folder)
    (tmp_path / ".git").mkdir()
    done = subprocess.run([ACTIONLINT.program("actionlint")], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_stacks_are_updated_one_after_the_other_each_after_its_approval_and_one_at_a_time() -> None:
    github = yaml.safe_load((EXAMPLES / "apply.yaml").read_text())["jobs"]
    assert [(name, job.get("needs")) for name, job in github.items()] == [
        ("dev", None),
        ("staging", "dev"),
        ("prod", "staging"),
    ]
    for name, job in github.items():
        assert job["with"] == {"stack": name}
        assert job["concurrency"] == {"group": f"stack-{name}", "cancel-in-progress": False}
    of_a_stack = yaml.safe_load((EXAMPLES / "apply-stack.yaml").read_text())["jobs"]
    assert (of_a_stack["up"]["needs"], of_a_stack["up"]["environment"]) == ("preview", "${{ inputs.stack }}")

    gitlab = yaml.safe_load(GITLAB.read_text())
    assert gitlab["stages"][1:4] == list(github)
    for name in github:
        assert gitlab[f"up {name}"]["needs"] == [f"preview {name}"]
        assert {gitlab[f"{step} {name}"]["stage"] for step in ("preview", "up")} == {name}
    (rule,) = gitlab[".up"]["rules"]
    assert (rule["when"], rule["allow_failure"]) == ("manual", False)
    assert gitlab[".preview"]["resource_group"] == gitlab[".up"]["resource_group"] == "$STACK"


def test_no_other_update_of_a_stack_runs_while_it_is_recovered() -> None:
    recover = yaml.safe_load((EXAMPLES / "recover.yaml").read_text())["jobs"]["recover"]
    update = yaml.safe_load((EXAMPLES / "apply.yaml").read_text())["jobs"]["prod"]
    chosen = {key: str(value).replace("${{ inputs.stack }}", "prod") for key, value in recover["concurrency"].items()}
    assert chosen == {key: str(value) for key, value in update["concurrency"].items()}

    gitlab = yaml.safe_load(GITLAB.read_text())
    assert gitlab["recover"]["resource_group"] == gitlab[".up"]["resource_group"].replace("STACK", "RECOVER")


def test_a_wrong_key_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((EXAMPLES / "drift.yaml").read_text().replace("runs-on:", "run-on:"))
    assert "run-on" in validate("--builtin-schema", "vendor.github-workflows", wrong)


@pytest.mark.parametrize("file", [*WORKFLOWS, GITLAB], ids=lambda file: file.name)
class TestFile:
    def test_commands_exist(self, file: Path) -> None:
        lines = file.read_text().replace("\\\n", " ").splitlines()
        commands = [found for line in lines for found in PYTHON.findall(line)]
        assert [wrong for module, arguments in commands for wrong in wrong_in_command(module, arguments)] == []

    def test_what_others_publish_is_pinned_by_version(self, file: Path) -> None:
        actions = re.findall(r"uses: (?!\./)\S+?(?:@(\S+))?(?: |$)", file.read_text(), re.MULTILINE)
        assert all(re.fullmatch(r"v\d+\.\d+\.\d+", version) for version in actions)
        runners = re.findall(r"(?:runs-on|image): (\S+)", file.read_text())
        assert not any(each.endswith("latest") or each.endswith(":") for each in runners)


def test_the_comment_is_found_by_its_first_line() -> None:
    for file in (EXAMPLES / "pull-request.yaml", GITLAB):
        assert MARKER in file.read_text()


GH = """#!/usr/bin/env python3
import json, subprocess, sys
words = sys.argv[1:]
if "--jq" in words:
    filter_ = words[words.index("--jq") + 1]
    sys.exit(subprocess.run(["jq", "--raw-output", filter_, "existing.json"]).returncode)
with open("asked.txt", "a") as asked:
    print(*words, file=asked)
"""
"""In place of GitHub's gh: it lists what is in a file, and writes down what it is asked to do."""


def asked_of_github(folder: Path, workflow: str, step: str, existing: object, **variables: str) -> str:
    """What the script of a step asks gh to do, beside what exists already."""
    if shutil.which("jq") is None:
        lacks("not on the PATH: jq; it is in the package jq")
    jobs = yaml.safe_load((EXAMPLES / workflow).read_text())["jobs"]
    (script,) = (each["run"] for job in jobs.values() for each in job["steps"] if each.get("name", "").startswith(step))
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    (folder / "existing.json").write_text(json.dumps(existing))
    path = f"{folder}:{os.environ['PATH']}"
    subprocess.run(["bash", "-e", "-c", script], cwd=folder, env={**variables, "PATH": path}, check=True)
    asked = folder / "asked.txt"
    return asked.read_text() if asked.exists() else ""


def comment(number: int, author: str, body: str) -> dict[str, object]:
    return {"id": number, "user": {"type": author}, "body": body}


@pytest.mark.parametrize(
    ("comments", "asked"),
    [
        ([comment(1, "User", f"{MARKER} quoted")], "repos/our/platform/issues/7/comments"),
        (
            [comment(2, "Bot", "Welcome"), comment(3, "Bot", f"{MARKER}\nfirst")],
            "--method PATCH repos/our/platform/issues/comments/3",
        ),
    ],
)
def test_the_comment_on_a_pull_request_is_updated_in_place(tmp_path: Path, comments: object, asked: str) -> None:
    of = {"GITHUB_REPOSITORY": "our/platform", "NUMBER": "7"}
    found = asked_of_github(tmp_path, "pull-request.yaml", "Write the comment", comments, **of)
    assert found == f"api {asked} --field body=@review.md --silent\n"


TITLE = "Stack prod: the cluster differs from the state"


@pytest.mark.parametrize(
    ("code", "issues", "asked"),
    [
        ("0", [], ""),
        ("0", [{"number": 5}], "issue close 5 --comment No longer.\n"),
        ("1", [], f"issue create --title {TITLE} --body-file issue.md\n"),
        ("1", [{"number": 5}], "issue edit 5 --body-file issue.md\n"),
    ],
)
def test_drift_opens_updates_or_closes_one_issue(tmp_path: Path, code: str, issues: object, asked: str) -> None:
    (tmp_path / "drift.txt").write_text("~ platform-namespace-team-a\n")
    assert asked_of_github(tmp_path, "drift.yaml", "Open, update", issues, STACK="prod", CODE=code) == asked
    assert not asked or code == "0" or "platform-namespace-team-a" in (tmp_path / "issue.md").read_text()


PLATFORMS = paths.ROOT / "docs" / "examples"


def steps() -> dict[str, dict[str, str]]:
    """The steps of GitHub's job, by the first word of their names."""
    job = yaml.safe_load((PLATFORMS / "pull-request.yaml").read_text())["jobs"]["review"]
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
        (self.checkout / "bin").symlink_to(paths.ROOT / "bin")
        (self.checkout / ".git" / "info" / "exclude").write_text("/.venv\n/bin\n")
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
    job: dict[str, Any] = yaml.safe_load((PLATFORMS / "gitlab-ci.yaml").read_text())["review"]
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
