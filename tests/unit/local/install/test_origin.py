"""The allowed values of `TOOLS`."""

from pathlib import Path

import pytest

from local.errors import RehearsalError
from local.install import install_missing
from local.install.build import Build
from local.install.mirror import Mirror
from local.install.origin import Auto, origin

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("", Auto),
        ("auto", Auto),
        ("build", Build),
        ("https://tools.example.com/ray-platform/", Mirror),
        (f"http://tools.example.com#sha256={DIGEST}", Mirror),
        (f"/#sha256={DIGEST}", Mirror),
    ],
)
def test_allowed_values(setting: str, kind: type) -> None:
    assert isinstance(origin(setting), kind)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("biuld", "TOOLS is 'biuld'; allowed are auto, build, and a mirror"),
        ("/no/such/folder", "there is no folder of that name"),
        ("ftp://tools.example.com", "a mirror is the https:// URL of a folder, or the folder's path"),
        ("https://", "a mirror is the https:// URL of a folder"),
        ("https://[::1", "is no URL: Invalid IPv6 URL"),
        ("https://tools.example.com#sha256=12", "pins the checksums of its mirror by '12'; a SHA-256 digest is 64"),
        ("http://tools.example.com", "over http:// anybody on the way can change what arrives"),
        ("https://tools.example.com/?token=1", "TOOLS names a mirror on tools.example.com with a user, a query"),
    ],
)
def test_the_error_for_a_bad_value_names_the_allowed_ones(setting: str, problem: str) -> None:
    with pytest.raises(RehearsalError) as error:
        origin(setting)
    assert problem in str(error.value)


def test_a_password_in_the_url_is_not_repeated() -> None:
    with pytest.raises(RehearsalError) as error:
        origin("https://me:secret@tools.example.com")
    assert "secret" not in str(error.value)


def test_a_bad_value_is_an_error_even_if_no_tool_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLS", "biuld")
    with pytest.raises(RehearsalError, match="biuld"):
        install_missing(())


def test_a_relative_folder_is_one_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror").mkdir()
    monkeypatch.chdir(tmp_path)
    assert isinstance(origin("mirror"), Mirror)
