"""Files that are replaced as a whole."""

import os
from pathlib import Path

import pytest

from core.files import replace_text


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to(file)
    replace_text(link, "new\n")
    assert (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777) == (True, "new\n", 0o600)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link"]


def test_a_text_that_cannot_be_written_leaves_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(file, "\ud800")
    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_pipe_gets_the_text_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_text(pipe, "text")
        assert (os.read(reader, 10), pipe.is_fifo()) == (b"text", True)
    finally:
        os.close(reader)
