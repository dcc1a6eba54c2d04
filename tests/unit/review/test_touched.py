"""Which stack files a change touches."""

from pathlib import Path

import pytest

from stacks.commands.impact.sources import git
from stacks.commands.review.reviewed import Touched, change
from tests.unit.review.story import STACK, commit, repository


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository, which is the current folder, on a branch."""
    monkeypatch.chdir(tmp_path)
    repository(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "branch")
    return tmp_path


def touched(base: str = "main", folder: Path = Path()) -> dict[str, Touched]:
    return {each.file.name: each for each in change(base, folder).stacks}


def edit(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{file.read_text() if file.exists() else ''}# edited\n")


def test_nothing_and_other_files_touch_no_stack(folder: Path) -> None:
    assert touched() == {}
    for name in ("README.md", "docs/status.md", "notes/Pulumi.prod.yaml"):
        edit(folder / name)
    assert touched() == {}


def test_an_edit_touches_its_stack_committed_or_not(folder: Path) -> None:
    edit(folder / "Pulumi.prod.yaml")
    assert touched() == {"Pulumi.prod.yaml": Touched(Path("Pulumi.prod.yaml"), edited=True)}
    commit(folder, "edit")
    assert list(touched()) == ["Pulumi.prod.yaml"]


def test_new_and_deleted_files(folder: Path) -> None:
    (folder / "Pulumi.new.yaml").write_text(STACK)
    (folder / "Pulumi.prod.yaml").unlink()
    found = touched()
    assert list(found) == ["Pulumi.new.yaml", "Pulumi.prod.yaml"]
    assert found["Pulumi.prod.yaml"] == Touched(Path("Pulumi.prod.yaml"), edited=True, deleted=True)
    (folder / "base.yaml").unlink()
    assert "Pulumi.staging.yaml" in touched(), "its base is deleted"


def test_a_base_touches_the_stacks_over_it_also_through_another_base(folder: Path) -> None:
    (folder / "shared").mkdir()
    (folder / "shared" / "nodes.yaml").write_text("config: {ray-platform:extends: ../base.yaml}\n")
    (folder / "Pulumi.prod.yaml").write_text(STACK.replace("base.yaml", "shared/nodes.yaml"))
    (folder / "Pulumi.alone.yaml").write_text("config: {}\n")
    commit(folder, "bases")
    git(folder, "branch", "-f", "main")
    edit(folder / "base.yaml")
    found = touched()
    assert {name: each.bases for name, each in found.items()} == {
        "Pulumi.prod.yaml": ("base.yaml",),
        "Pulumi.staging.yaml": ("base.yaml",),
    }


@pytest.mark.parametrize("file", ["__main__.py", "components/tenant/settings.py", "policies/configuration.yaml"])
def test_the_program_touches_all(folder: Path, file: str) -> None:
    edit(folder / file)
    found = change("main", Path())
    assert found.program == (file,)
    assert [each.file.name for each in found.stacks] == ["Pulumi.prod.yaml", "Pulumi.staging.yaml"]
    assert not any(each.edited for each in found.stacks)


def test_later_commits_of_the_base_are_not_of_this_change(folder: Path) -> None:
    edit(folder / "Pulumi.prod.yaml")
    commit(folder, "on the branch")
    git(folder, "checkout", "-q", "main")
    edit(folder / "Pulumi.staging.yaml")
    commit(folder, "on main")
    git(folder, "checkout", "-q", "branch")
    assert list(touched()) == ["Pulumi.prod.yaml"]


def test_stack_files_may_be_in_a_folder_of_the_repository(folder: Path) -> None:
    below = folder / "platform"
    below.mkdir()
    (below / "Pulumi.prod.yaml").write_text(STACK.replace("base.yaml", "../base.yaml"))
    commit(folder, "below")
    git(folder, "branch", "-f", "main")
    edit(folder / "core" / "not-of-the-program-below.py")
    assert touched(folder=Path("platform")) == {}
    edit(folder / "base.yaml")
    assert touched(folder=Path("platform"))["Pulumi.prod.yaml"].bases == ("../base.yaml",)
    edit(below / "core" / "names.py")
    assert change("main", Path("platform")).program == ("core/names.py",)


def test_what_a_link_leads_to_touches_its_stack(folder: Path) -> None:
    (folder / "environments").mkdir()
    real = (folder / "Pulumi.prod.yaml").rename(folder / "environments" / "prod.yaml")
    (folder / "Pulumi.prod.yaml").symlink_to("environments/prod.yaml")
    commit(folder, "a link")
    edit(real)
    assert touched("HEAD") == {"Pulumi.prod.yaml": Touched(Path("Pulumi.prod.yaml"), edited=True)}
