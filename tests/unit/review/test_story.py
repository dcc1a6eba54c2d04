"""The comment on each branch of a story, as it is published."""

import json
from functools import partial
from pathlib import Path

import pytest

from stacks.commands.impact.sources import git
from stacks.commands.review.comment import LONGEST, MARKER, comment
from testbed.commands import stacks
from tests.unit.review.story import (
    BASE,
    BRANCHES,
    BY_NAME,
    COMMENTS,
    SECRET,
    STACK,
    checked_out,
    repository,
    reviewed,
    written,
)

FAIL = {"raises a queue over the nodes", "takes an image of anybody", "has a typo", "has a secret"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_PLATFORM_POLICIES", raising=False)
    repository(tmp_path)
    return tmp_path


def edit(folder: Path, old: str, new: str) -> None:
    file = folder / "Pulumi.prod.yaml"
    file.write_text(file.read_text().replace(old, new))


review = partial(stacks, "review", "--base", "main")


@pytest.mark.parametrize("name", BRANCHES)
def test_the_comment_on_a_branch(folder: Path, name: str) -> None:
    """If the difference is intended: `python -m tests.unit.review.story`."""
    checked_out(folder, name)
    done = review()
    assert done.stdout == written(name).read_text()
    assert done.stdout.startswith(f"{MARKER}\n")
    assert done.exit_code == (name in FAIL)


def test_no_other_comments_are_kept() -> None:
    assert {*COMMENTS.iterdir()} == set(map(written, BRANCHES))


@pytest.mark.parametrize("output", ["markdown", "json"])
def test_no_secret_is_shown_when_it_comes_or_leaves(folder: Path, output: str) -> None:
    checked_out(folder, "has a secret")
    comes = review("--format", output).output
    (folder / "Pulumi.prod.yaml").write_text(STACK)
    leaves = stacks("review", "--base", "has-a-secret", "--format", output).output
    assert "HF_TOKEN" in comes.replace("\\", "")
    for text in (comes, leaves):
        assert SECRET not in text.replace("\\", "")
        assert BY_NAME not in text


def test_what_has_errors_in_the_base_is_not_compared(folder: Path) -> None:
    checked_out(folder, "has a secret")
    (folder / "Pulumi.prod.yaml").write_text(STACK)
    done = stacks("review", "--base", "has-a-secret")
    assert "The file has errors in has-a-secret, so it is unknown what changes" in done.stdout
    assert "prod: cannot be compared" in done.stdout
    assert done.exit_code == 0


def test_programs_get_the_parts(folder: Path) -> None:
    checked_out(folder, "takes an image of anybody")
    found = json.loads(review("--format", "json").stdout)
    [stack] = found["stacks"]
    assert found["fails"] is True
    assert (stack["stack"], stack["result"], stack["check"]) == ("prod", "violates a mandatory policy", [])
    assert {each["rule"] for each in stack["policies"]["new"] if each["blocks"]} == {"img-registry"}
    assert stack["impact"]["objects"][0]["name"] == "team-a/training"


def test_a_violation_that_is_not_new_fails_too(folder: Path) -> None:
    checked_out(folder, "takes an image of anybody")
    edit(folder, "idleTimeout: 5m", "idleTimeout: 6m")
    done = stacks("review", "--base", "takes-an-image-of-anybody")
    assert "**Mandatory policy `img-registry`** (not new)" in done.stdout
    assert done.exit_code == 1


def test_files_of_the_base_set_levels_of_policies(folder: Path) -> None:
    checked_out(folder, "takes an image of anybody")
    (folder / "levels.yaml").write_text("environments: {prod: {rules: {img-registry: advisory}}}\n")
    done = review("--policies", "levels.yaml")
    assert done.exit_code == 0
    assert "5 advisory" in done.stdout


def test_an_update_that_would_fail_is_named(folder: Path) -> None:
    edit(folder, "2.60.0", "2.61.0")
    done = review()
    assert "### Stack review: prod: `pulumi up` ends with an error" in done.stdout
    assert "- **`pulumi up` fails**: RayCluster team-a/training: rayVersion" in done.stdout
    assert done.exit_code == 0


def test_an_edit_of_the_program_is_not_called_harmless(folder: Path) -> None:
    (folder / "components").mkdir()
    (folder / "components" / "tenant.py").write_text("")
    done = review()
    assert "### Stack review: prod, staging: unknown: only the program changes" in done.stdout
    assert "The program changes (`components/tenant.py`), which concerns all stacks." in done.stdout
    assert done.exit_code == 0


def test_a_deleted_stack_is_named(folder: Path) -> None:
    (folder / "Pulumi.prod.yaml").unlink()
    done = review()
    assert "| prod | its file is deleted | - | - | - | - | - |" in done.stdout
    assert "- **Deleted**: `Pulumi.prod.yaml`. What the stack has created stays in the cluster." in done.stdout
    assert done.exit_code == 0


def test_long_details_are_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked_out(folder, "renames a cluster")
    monkeypatch.setattr("stacks.commands.review.comment._items", lambda _texts: ["x" * LONGEST])
    text = comment(reviewed())
    assert len(text) < LONGEST
    assert "- **Deletes**: RayCluster team-a/training" in text
    assert "The details are too long for a comment" in text


def test_a_comment_on_very_many_stacks_is_cut(folder: Path) -> None:
    for number in range(300):
        (folder / f"Pulumi.wrong-{number}.yaml").write_text("config: {ray-platform:tenants: 1}\n")
    text = review().stdout
    assert len(text) < LONGEST + 100
    assert "The rest is too long for a comment." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base", "nowhere"], "'nowhere' is not a revision of git here"),
        (["--base", "alone"], "git finds no commit that alone and this branch share"),
        (["--base", "main", "--preview-json", "base.yaml"], "base.yaml: cannot be read as JSON"),
        (["--base", "main", "--policies", "none.yaml"], "none.yaml: cannot be read"),
    ],
)
def test_wrong_use_ends_with_2_and_one_message(folder: Path, arguments: list[str], message: str) -> None:
    tree = git(folder, "write-tree").strip()
    of_nobody = git(folder, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit-tree", "-m", "alone", tree).strip()
    git(folder, "branch", "alone", of_nobody)
    done = stacks("review", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_story_begins_without_errors_and_violations(folder: Path) -> None:
    (folder / "base.yaml").write_text(f"{BASE}\n")
    found = reviewed()
    assert [each.result for each in found.stacks] == ["affects nothing that runs"] * 2
    assert not found.fails
