"""Programs that are already on the PATH."""

import shutil
import subprocess
from pathlib import Path

import pytest

from local.install import install_missing, search_path
from local.tools import Release, Tool


@pytest.fixture
def asked(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """The tool, which needs no files of its module and prints its version. Nobody publishes it."""
    monkeypatch.setitem(search_path.QUESTIONS, "example", ("--version",))
    return Tool(tool.name, tool.module, tool.programs, release=Release("https://nowhere.test/{program}"))


def test_a_program_of_the_pinned_version_is_copied(asked: Tool, program: Path, without_go: Path) -> None:
    (without_go / "example").symlink_to(program)
    install_missing((asked,))
    installed = asked.program("example")
    assert not installed.is_symlink()
    program.unlink()
    assert subprocess.run([installed], capture_output=True, text=True, check=True).stdout == "example version v1.0.0\n"


def test_another_version_does_not_count(asked: Tool, program: Path, without_go: Path) -> None:
    shutil.copy(program, without_go)
    assert search_path.find("example", "v1.0.0") == without_go / "example"
    assert search_path.find("example", "v1.0.1") is None
    assert search_path.find("example", "v1.0") is None


@pytest.mark.parametrize("answer", ["v1.0.0+k3s1", "v1.0.0-rc.1", "11.0.0", "1.0", ""])
def test_only_exactly_the_pinned_version_counts(
    answer: str, asked: Tool, without_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A distribution's variant of a version is another program."""
    echo = shutil.which("echo", path="/bin:/usr/bin")
    assert echo is not None
    (without_go / "example").symlink_to(echo)
    monkeypatch.setitem(search_path.QUESTIONS, "example", (f"example version {answer}",))
    assert search_path.find("example", "v1.0.0") is None
    monkeypatch.setitem(search_path.QUESTIONS, "example", ("example version v1.0.0 (linux)",))
    assert search_path.find("example", "v1.0.0") is not None


def test_a_script_does_not_count(asked: Tool, without_go: Path) -> None:
    """A version manager's script starts another program tomorrow, from wherever it is copied to."""
    script = without_go / "example"
    script.write_text("#!/bin/sh\necho example version v1.0.0\n")
    script.chmod(0o755)
    assert search_path.find("example", "v1.0.0") is None


def test_a_link_to_a_program_that_starts_others_does_not_count(asked: Tool, program: Path, without_go: Path) -> None:
    """As in mise and snap: the name by which they are called decides what they start, today in this version."""
    manager = Path(shutil.copy(program, without_go / "manager"))
    (without_go / "example").symlink_to(manager)
    answer = subprocess.run([without_go / "example"], capture_output=True, text=True, check=True).stdout
    assert answer == "example version v1.0.0\n"
    assert search_path.find("example", "v1.0.0") is None


def test_a_program_that_does_not_run_does_not_count(asked: Tool, without_go: Path) -> None:
    (without_go / "example").write_bytes(b"\x7fELF of another machine")
    (without_go / "example").chmod(0o755)
    assert search_path.find("example", "v1.0.0") is None


def test_a_program_that_does_not_answer_does_not_count(
    asked: Tool, without_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = shutil.which("sleep", path="/bin:/usr/bin")
    assert sleep is not None
    (without_go / "example").symlink_to(sleep)
    monkeypatch.setitem(search_path.QUESTIONS, "example", ("60",))
    monkeypatch.setattr(search_path, "SECONDS", 0.2)
    assert search_path.find("example", "v1.0.0") is None
