"""Passwords in files that change, and that cannot always be read."""

from pathlib import Path

import pytest

from gateway.passwords import passwords


def test_each_line_of_a_file_is_a_password(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text("first\nsecond\n")
    assert passwords(file) == (b"first", b"second")
    assert passwords(None) == ()


def test_a_file_that_cannot_be_read_keeps_its_passwords_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "passwords"
    file.write_text("first\n")
    assert passwords(file) == (b"first",)
    file.unlink()
    assert passwords(file) == passwords(file) == (b"first",)
    assert [record.getMessage() for record in caplog.records] == [
        f"{file} cannot be read (No such file or directory): the passwords that were in it stay in use"
    ]
    file.write_text("second\n")
    assert passwords(file) == (b"second",)


def test_a_file_that_was_never_read_has_no_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert passwords(tmp_path / "none") == ()
    assert "there is no password" in caplog.text
