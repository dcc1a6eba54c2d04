"""The workflows that call the review: their platforms accept them, and their commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stacks.review.comment import MARKER
from tests.unit.test_docs import PYTHON, wrong_in_command

pytestmark = pytest.mark.unit

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
