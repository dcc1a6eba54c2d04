"""Where tools come from: the values of `TOOLS`, programs on the PATH, and compilers that are too old."""

import shutil
import subprocess
from pathlib import Path

import pytest

from local.errors import RehearsalError
from local.install import install_missing, search_path
from local.install.build import Build
from local.install.mirror import Mirror
from local.install.origin import Auto, Origin, origin
from local.tools import Release, Tool

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
        ("https://[::1", "is not a URL: Invalid IPv6 URL"),
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


def answers(folder: Path, version: str, toolchain: str) -> None:
    """A `go` of this version alone on the PATH. It fails as a compiler."""
    go = folder / "go"
    go.write_text(f'#!/bin/sh\n[ "$1" = env ] && printf "%s\\n" "{version}" "{toolchain}" || exit 1\n')
    go.chmod(0o755)


@pytest.mark.parametrize("origin", [Auto(), Build()])
@pytest.mark.parametrize(
    ("version", "toolchain"), [("go1.23.9", "local"), ("go1.24rc1", "local"), ("go1.9", "go1.9"), ("go1.20", "")]
)
def test_go_that_is_too_old_and_gets_no_other_version_is_refused(
    tool: Tool, without_go: Path, version: str, toolchain: str, origin: Origin
) -> None:
    answers(without_go, version, toolchain)
    with pytest.raises(RehearsalError) as refused:
        origin.check([tool])
    problem = f"example needs Go 1.24.0 or newer; the one on the PATH is {version} and gets no newer one "
    assert str(refused.value).startswith(f"{problem}(GOTOOLCHAIN={toolchain})")
    assert "Install Go 1.24.0 or newer" in str(refused.value)


@pytest.mark.parametrize(
    ("version", "toolchain"),
    [
        ("go1.24.0", "local"),
        ("go1.26.8", "local"),
        ("go2.0", "local"),
        ("go1.21.0", "auto"),
        ("go1.21.0", "go1.21+auto"),
    ],
)
def test_go_that_is_new_enough_or_gets_a_newer_version_builds(
    tool: Tool, without_go: Path, version: str, toolchain: str
) -> None:
    answers(without_go, version, toolchain)
    Build().check([tool])


def test_the_newest_of_the_required_versions_counts(tool: Tool, checkout: Path, without_go: Path) -> None:
    other = Tool("other", tool.module, {})
    (checkout / "local/tools/other").mkdir()
    (checkout / "local/tools/other/go.mod").write_text("module m\n\ngo 1.25.11\n")
    answers(without_go, "go1.25.9", "local")
    with pytest.raises(RehearsalError, match=r"other needs Go 1\.25\.11 or newer"):
        Build().check([tool, other])
