"""A mirror: archives that one machine writes and others install, with checksums that can be pinned."""

import shutil
import subprocess
from pathlib import Path

import pytest

from local.errors import RehearsalError
from local.install import checksums, install_missing
from local.install.mirror import PIN, archive_name, write_mirror
from local.tools import Tool
from tests.unit.local.install.server import Server, remains, remove

pytestmark = pytest.mark.thorough


@pytest.fixture
def pin(tool: Tool, built: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The digest of a mirror's SHA256SUMS. The server has the mirror, `TOOLS` names it, and the cache is empty."""
    shutil.copytree(built, tool.folder)
    digest = write_mirror(server.folder, [tool])
    remove(tool)
    monkeypatch.setenv("TOOLS", f"{server.url}{PIN}{digest}")
    return digest


def test_a_tool_from_a_mirror_is_the_tool_that_was_built(pin: str, tool: Tool, without_go: Path) -> None:
    install_missing((tool,))
    answer = subprocess.run([tool.program("example")], capture_output=True, text=True, check=True).stdout
    assert answer == "example version v1.0.0\n"
    assert (tool.share("config") / "crd.yaml").read_text() == "kind: CustomResourceDefinition\n"
    assert sorted(entry.name for entry in tool.folder.iterdir()) == ["bin", "share"]


def test_a_folder_is_a_mirror_too(
    pin: str, tool: Tool, server: Server, without_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLS", str(server.folder))
    install_missing((tool,))
    assert tool.program("example").is_file()
    assert server.requests == []


def test_without_a_pin_the_digest_to_pin_is_shown(
    pin: str, tool: Tool, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLS", server.folder.as_uri())
    install_missing((tool,))
    assert f"TOOLS={server.folder.as_uri()}{PIN}{pin}" in capsys.readouterr().out


def test_tools_in_the_cache_are_not_downloaded(pin: str, tool: Tool, server: Server) -> None:
    install_missing((tool,))
    server.requests.clear()
    install_missing((tool,))
    assert server.requests == []


def test_the_same_tool_gives_the_same_bytes(pin: str, tool: Tool, server: Server, tmp_path: Path) -> None:
    install_missing((tool,))
    assert write_mirror(tmp_path / "second", [tool]) == pin


def test_a_mirror_keeps_the_archives_of_other_versions(pin: str, tool: Tool, server: Server) -> None:
    (server.folder / "example-v0.9.0-0123456789ab-linux-arm64.tar.gz").write_bytes(b"older")
    install_missing((tool,))
    write_mirror(server.folder, [tool])
    sums = checksums.read((server.folder / "SHA256SUMS").read_text())
    assert sorted(sums) == ["example-v0.9.0-0123456789ab-linux-arm64.tar.gz", archive_name(tool)]


def test_a_tool_that_the_mirror_lacks_is_named_and_not_built(pin: str, tool: Tool, server: Server) -> None:
    with (tool.source / "go.mod").open("a") as file:
        file.write("// pinned otherwise\n")
    with pytest.raises(RehearsalError) as error:
        install_missing((tool,))
    assert str(error.value) == (
        f"the mirror {server.url} lacks\n  {archive_name(tool)}\n"
        "Write them there from this checkout with `make mirror DIR=...` on a machine of this kind, "
        "or build them here with TOOLS=build (docs/tools.md)."
    )
    assert remains() == []


def test_an_archive_with_a_wrong_checksum_is_refused(pin: str, tool: Tool, server: Server) -> None:
    archive = server.folder / archive_name(tool)
    expected = checksums.digest(archive)
    archive.write_bytes(archive.read_bytes() + b"more")
    with pytest.raises(RehearsalError) as error:
        install_missing((tool,))
    refused = f"{server.url}/{archive.name} does not have the checksum that the mirror's SHA256SUMS has for it"
    assert refused in str(error.value)
    assert f"expected  sha256 {expected}\n  got       sha256 {checksums.digest(archive)}\n" in str(error.value)
    assert remains() == []


def test_checksums_that_are_not_the_pinned_ones_are_refused(pin: str, tool: Tool, server: Server) -> None:
    """An attacker who can change an archive on the mirror can change its SHA256SUMS as well, but not the pin."""
    archive = server.folder / archive_name(tool)
    archive.write_bytes(b"another")
    (server.folder / "SHA256SUMS").write_text(checksums.write({archive.name: checksums.digest(archive)}))
    with pytest.raises(RehearsalError, match=rf"does not have the checksum that TOOLS has.*\n.*{pin}"):
        install_missing((tool,))
    assert server.requests == ["SHA256SUMS"]
    assert remains() == []


def test_a_download_that_is_cut_off_once_is_repeated(pin: str, tool: Tool, server: Server) -> None:
    server.cuts = 1
    install_missing((tool,))
    assert server.requests == ["SHA256SUMS", archive_name(tool), archive_name(tool)]
    assert remains() == [tool.folder.name]


def test_a_download_that_is_cut_off_again_is_an_error_and_leaves_nothing(pin: str, tool: Tool, server: Server) -> None:
    server.cuts = 2
    size = (server.folder / archive_name(tool)).stat().st_size
    with pytest.raises(RehearsalError, match=rf"was cut off after {size // 2} of {size} bytes\. Try again"):
        install_missing((tool,))
    assert remains() == []


def test_a_mirror_that_does_not_answer_is_an_error(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLS", f"http://127.0.0.1:9{PIN}{'0' * 64}")
    with pytest.raises(RehearsalError, match=r"http://127\.0\.0\.1:9 did not send SHA256SUMS: .*refused.*TOOLS=build"):
        install_missing((tool,))


def test_a_folder_without_checksums_is_no_mirror(tool: Tool, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLS", str(server.folder))
    with pytest.raises(RehearsalError, match=r"did not send SHA256SUMS: .*SHA256SUMS: there is no such file"):
        install_missing((tool,))


def test_a_line_that_is_no_checksum_is_shown(tool: Tool, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    (server.folder / "SHA256SUMS").write_text("<html>Please sign in</html>\n")
    monkeypatch.setenv("TOOLS", str(server.folder))
    with pytest.raises(RehearsalError, match=r"SHA256SUMS: '<html>Please sign in</html>' is not of the form"):
        install_missing((tool,))


@pytest.mark.parametrize(
    ("content", "problem"), [(b"no archive", "cannot be unpacked"), (None, "lacks bin/example, share/config")]
)
def test_an_archive_without_a_tool_is_refused(
    content: bytes | None,
    problem: str,
    tool: Tool,
    server: Server,
    without_go: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool.folder.mkdir(parents=True)
    write_mirror(server.folder, [tool])
    remove(tool)
    archive = server.folder / archive_name(tool)
    archive.write_bytes(content or archive.read_bytes())
    (server.folder / "SHA256SUMS").write_text(checksums.write({archive.name: checksums.digest(archive)}))
    monkeypatch.setenv("TOOLS", str(server.folder))
    with pytest.raises(RehearsalError, match=problem):
        install_missing((tool,))
    assert remains() == []


def test_a_folder_that_cannot_be_written_to_is_named(pin: str, tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RehearsalError, match=r"the mirror in .*/file cannot be written"):
        write_mirror(tmp_path / "file", [])
