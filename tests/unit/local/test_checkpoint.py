"""A state that survives a disk that is full. tests/engine/test_full_disk.py has the disk."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from local.checkpoint import Checkpoint
from local.errors import RehearsalError

STATE: dict[str, Any] = {"version": 3, "checkpoint": {"stack": "dev", "latest": {"resources": []}}}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    made = Checkpoint(tmp_path, "ray-platform", "dev")
    made.file.parent.mkdir(parents=True)
    written(made, STATE)
    return made


def written(checkpoint: Checkpoint, state: dict[str, Any], part: float = 1.0) -> None:
    """Writes like Pulumi: replaces the file. `part`: of the text, as if the disk is full."""
    text = json.dumps(state)
    made = checkpoint.file.with_suffix(".tmp")
    made.write_text(text[: int(len(text) * part)])
    made.replace(checkpoint.file)


def read(checkpoint: Checkpoint) -> dict[str, Any]:
    return dict(json.loads(checkpoint.file.read_text()))


def test_the_state_of_a_successful_command_is_unchanged_and_the_copy_takes_no_space(checkpoint: Checkpoint) -> None:
    with checkpoint.kept():
        assert checkpoint.file.stat().st_nlink == 2
        written(checkpoint, STATE | {"version": 4})
    assert read(checkpoint)["version"] == 4
    assert not checkpoint.interrupted


def test_the_earlier_state_is_restored_if_the_new_one_could_not_be_written(checkpoint: Checkpoint) -> None:
    with pytest.raises(RehearsalError, match=r"(?s)disk under .* is full.*back in place.*make up"), checkpoint.kept():
        written(checkpoint, STATE, part=0.5)
    assert read(checkpoint) == STATE
    assert checkpoint.interrupted


class Killed(BaseException):
    """The command's process and this one."""


def killed(checkpoint: Checkpoint, state: dict[str, Any], part: float = 1.0) -> None:
    """A command that has written this text when everything is killed."""
    with checkpoint.kept():
        written(checkpoint, state, part)
        raise Killed


@pytest.mark.parametrize(("part", "version"), [(0.5, 3), (1.0, 4)], ids=["truncated", "complete"])
def test_the_next_command_restores_a_state_that_a_kill_truncated(
    checkpoint: Checkpoint, part: float, version: int
) -> None:
    with pytest.raises(Killed):
        killed(checkpoint, STATE | {"version": 4}, part)
    assert checkpoint.interrupted
    with checkpoint.kept():
        assert read(checkpoint) == {**STATE, "version": version}
    assert not checkpoint.interrupted


def test_begun_operations_and_locks_are_signs_of_a_killed_command(checkpoint: Checkpoint, tmp_path: Path) -> None:
    assert not checkpoint.interrupted
    lock = tmp_path / ".pulumi" / "locks" / "organization" / "ray-platform" / "dev" / "one.json"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert checkpoint.interrupted
    lock.unlink()
    written(checkpoint, {"version": 3, "checkpoint": {"latest": {"pending_operations": [{"type": "creating"}]}}})
    assert checkpoint.interrupted


def test_a_command_is_refused_if_its_state_would_not_fit(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 400_000}))
    with pytest.raises(RehearsalError, match=r"0\.4 MB are free .* free at least 1\.0 MB"):
        checkpoint.check_space()


def test_the_error_for_a_state_without_a_copy_names_the_folder_of_others(checkpoint: Checkpoint) -> None:
    written(checkpoint, STATE, part=0.5)
    with pytest.raises(RehearsalError, match=r"cannot be read.*/history"), checkpoint.kept():
        pytest.fail("it began")


def test_a_second_command_does_not_change_the_copy_of_the_first(checkpoint: Checkpoint) -> None:
    with checkpoint.kept():
        with checkpoint.kept():
            pass
        assert checkpoint.interrupted, "the other one has removed the copy"
