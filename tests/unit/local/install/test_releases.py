"""Published programs are used if they are pinned and reachable, or in a mirror; all others are built."""

import shutil
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

from local import paths
from local.errors import RehearsalError
from local.install import checksums, install_missing, releases
from local.install.mirror import PIN, archive_name, write_mirror
from local.tools import ALL, ARCHITECTURE, ETCD, KUBERNETES_NODE, PULUMI, Release, Tool
from tests.unit.local.install.server import Server, remains, remove

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[4]


@pytest.fixture
def published(released: Tool, program: Path, server: Server) -> Path:
    """The archive that the server has of the tool, with a pin."""
    (url,) = released.release_files(ARCHITECTURE)
    archive = server.folder / url.rpartition("/")[2]
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(program, "example-dist/example")
    _pin(url, checksums.digest(archive))
    return archive


def _pin(url: str, digest: str) -> None:
    releases.pins_file().write_text(checksums.write({url: digest}))


def _built(tool: Tool, shown: str) -> bool:
    """Whether it was built, and not downloaded."""
    return f"Building {tool.name} {tool.version}" in shown and tool.program("example").is_file()


def test_a_pinned_release_is_downloaded(released: Tool, published: Path, without_go: Path) -> None:
    install_missing((released,))
    answer = subprocess.run([released.program("example")], capture_output=True, text=True, check=True).stdout
    assert answer == "example version v1.0.0\n"
    assert [entry.name for entry in (released.folder / "bin").iterdir()] == ["example"]


def test_a_tool_without_a_pin_is_built(
    released: Tool, published: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    releases.pins_file().write_text("")
    install_missing((released,))
    assert _built(released, capsys.readouterr().out)
    assert server.requests == []


def test_with_tools_build_nothing_is_downloaded(
    released: Tool, published: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLS", "build")
    install_missing((released,))
    assert server.requests == []


def test_a_release_with_a_wrong_checksum_is_refused(released: Tool, published: Path) -> None:
    """Never skipped: it is either an attack or a pin that nobody has checked."""
    (url,) = released.release_files(ARCHITECTURE)
    expected, got = "0" * 64, checksums.digest(published)
    _pin(url, expected)
    with pytest.raises(RehearsalError) as error:
        install_missing((released,))
    assert str(error.value) == (
        f"{url} does not have the checksum that local/tools/releases.sha256 has for it; nothing of it was installed:\n"
        f"  expected  sha256 {expected}\n"
        f"  got       sha256 {got}\n"
        "Find out why before you trust that server. TOOLS=build builds the programs here (docs/tools.md)."
    )
    assert remains() == []


def test_a_release_that_is_cut_off_twice_is_built(
    released: Tool, published: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.cuts = 2
    install_missing((released,))
    shown = capsys.readouterr().out
    assert "was cut off after" in shown
    assert _built(released, shown)


def test_a_tool_is_built_if_its_release_was_removed(
    released: Tool, published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published.unlink()
    install_missing((released,))
    shown = capsys.readouterr().out
    assert "404 File not found" in shown
    assert _built(released, shown)


def test_a_release_of_another_layout_is_built(
    released: Tool, published: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(published, "w:gz", compresslevel=1) as tar:
        tar.add(program, "elsewhere/example")
    (url,) = released.release_files(ARCHITECTURE)
    _pin(url, checksums.digest(published))
    install_missing((released,))
    assert _built(released, capsys.readouterr().out)


@pytest.mark.parametrize("listening", [False, True], ids=["refused", "no answer"])
def test_without_a_network_a_server_is_asked_once_and_everything_is_built(
    listening: bool,
    released: Tool,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(releases, "PATIENCE", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listening:
            silent.listen()
        release = Release(f"http://127.0.0.1:{silent.getsockname()[1]}/{{program}}")
        first, second = (Tool(name, released.module, released.programs, release=release) for name in ("one", "two"))
        for tool in (first, second):
            shutil.copytree(released.source, tool.source)
        (url,) = first.release_files(ARCHITECTURE)
        _pin(url, "0" * 64)
        install_missing((first, second))
    shown = capsys.readouterr().out
    assert shown.count("127.0.0.1 does not answer") == 1
    assert _built(first, shown)
    assert _built(second, shown)


def test_published_files_are_pinned_and_pins_never_change(released: Tool, published: Path, server: Server) -> None:
    digest = checksums.digest(published)
    urls = [url for arch in releases.ARCHITECTURES for url in released.release_files(arch)]
    for url in urls:
        (server.folder / url.rpartition("/")[2]).write_bytes(published.read_bytes())
    releases.pins_file().write_text(checksums.write({"https://nowhere.test/of-an-older-version": "0" * 64}))
    assert releases.pin_releases([released]) == dict.fromkeys(urls, digest)
    published.write_bytes(b"published again")
    assert releases.pin_releases([released]) == {}
    assert set(releases.pins().values()) == {digest}


def test_a_file_that_cannot_be_downloaded_is_not_pinned(released: Tool, server: Server) -> None:
    with pytest.raises(RehearsalError, match=r"cannot be pinned: .*404"):
        releases.pin_releases([released])
    assert releases.pins() == {}


@pytest.fixture
def of_this_project(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The pins of this project."""
    monkeypatch.setattr(paths, "ROOT", ROOT)
    return releases.pins()


def test_no_pin_is_of_an_older_version(of_this_project: dict[str, str]) -> None:
    """After an upgrade `python -m local pin-releases` removes it, and pins the new files where they can be reached."""
    known = {url for tool in ALL for arch in releases.ARCHITECTURES for url in tool.release_files(arch)}
    assert set(of_this_project) <= known


def test_the_addresses_of_releases(of_this_project: dict[str, str]) -> None:
    assert ETCD.release_files("arm64") == {
        "https://github.com/etcd-io/etcd/releases/download/v3.6.4/etcd-v3.6.4-linux-arm64.tar.gz": {
            "etcd": "etcd-v3.6.4-linux-arm64/etcd"
        }
    }
    assert PULUMI.release_files("amd64") == {
        "https://github.com/pulumi/pulumi/releases/download/v3.276.0/pulumi-v3.276.0-linux-x64.tar.gz": {
            "pulumi": "pulumi/pulumi"
        }
    }
    assert KUBERNETES_NODE.release_files("amd64") == {
        f"https://dl.k8s.io/release/v1.36.5/bin/linux/amd64/{program}": {program: None}
        for program in ("kubelet", "kube-proxy")
    }


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
