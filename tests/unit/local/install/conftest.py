"""A small tool that Go really builds, and a web server for its archives."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import paths
from local.install.build import Build
from local.tools import Release, Tool
from tests.unit.local.install.server import Server, serving

MAIN = """\
package main

import (
	"os"
	"path/filepath"
)

func main() {
	if filepath.Base(os.Args[0]) == "example" {
		os.Stdout.WriteString("example version v1.0.0\\n")
	} else {
		os.Stdout.WriteString("manager version v2.0.0\\n")
	}
}
"""
"""Another program under another name, as version managers use it."""


def write_checkout(folder: Path) -> None:
    """A checkout that pins one tool, whose source is beside the pins. No release is pinned."""
    pins = folder / "local/tools/example"
    (pins / "module/config").mkdir(parents=True)
    (pins / "module/config/crd.yaml").write_text("kind: CustomResourceDefinition\n")
    (pins / "module/main.go").write_text(MAIN)
    (pins / "module/go.mod").write_text("module example.test/tool\n\ngo 1.24.0\n")
    required = "require example.test/tool v1.0.0\n\nreplace example.test/tool => ./module\n"
    (pins / "go.mod").write_text(f"module m\n\ngo 1.24.0\n\n{required}")
    (pins / "go.sum").touch()
    (pins.parent / "releases.sha256").touch()


TOOL = Tool("example", "example.test/tool", {"example": "example.test/tool"}, files=("config",))


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Such a checkout, with an empty cache."""
    write_checkout(tmp_path / "checkout")
    monkeypatch.setattr(paths, "ROOT", tmp_path / "checkout")
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.delenv("TOOLS", raising=False)
    return tmp_path / "checkout"


@pytest.fixture
def tool() -> Tool:
    """The tool of that checkout."""
    return TOOL


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of its build, outside the cache."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "bin").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "ROOT", folder / "checkout")
        patch.setenv("GOPROXY", "off")
        write_checkout(folder / "checkout")
        Build().install(TOOL, folder, "")
    shutil.rmtree(folder / "checkout")
    return folder


@pytest.fixture
def program(built: Path, tmp_path: Path) -> Path:
    """The built program, for a test that may remove it."""
    return Path(shutil.copy(built / "bin/example", tmp_path / "example"))


@pytest.fixture
def without_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the whole PATH: if a test succeeds, nothing was built."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server for an empty folder."""
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served") as server:
        yield server


@pytest.fixture
def released(tool: Tool, server: Server) -> Tool:
    """The tool, with a release on the server if a test puts it there."""
    release = Release(
        f"{server.url}/{{program}}-{{version}}-{{architecture}}.tar.gz", member="{program}-dist/{program}"
    )
    return Tool(tool.name, tool.module, tool.programs, release=release)
