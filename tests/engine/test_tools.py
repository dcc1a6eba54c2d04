"""Real tools from a mirror and from the PATH."""

import functools
import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.install import install_missing, search_path
from local.install.mirror import PIN, write_mirror
from local.tools import ETCD, KUBERNETES, KWOK, PULUMI, Tool

pytestmark = [pytest.mark.engine, pytest.mark.thorough]


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """`TOOLS` for a web server with the etcd of this machine."""
    digest = write_mirror(tmp_path / "served", [ETCD])
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_address[1]}{PIN}{digest}"
        serving.shutdown()


def test_etcd_from_a_mirror_runs(mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = ETCD.program("etcd")
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setenv("TOOLS", mirror)
    install_missing((ETCD,))
    program = ETCD.program("etcd")
    assert program.is_relative_to(tmp_path)
    assert program.read_bytes() == installed.read_bytes()
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert f"etcd Version: {ETCD.version.removeprefix('v')}" in answer


@pytest.mark.parametrize(
    ("tool", "program"),
    [(tool, program) for tool in (ETCD, KUBERNETES, KWOK, PULUMI) for program in tool.programs],
    ids=lambda value: getattr(value, "name", value),
)
def test_programs_on_the_path_print_their_version(tool: Tool, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tool.program(program)
    monkeypatch.setenv("PATH", str(file.parent))
    assert search_path.find(program, tool.version) == file
    assert search_path.find(program, "v0.0.1") is None
