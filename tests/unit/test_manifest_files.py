"""External manifests are read from files and URLs, and what never changes is fetched once."""

import functools
import http.server
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.manifest_files import ManifestError, read
from testbed.web_server import serving

pytestmark = pytest.mark.thorough

TEXT = "kind: ConfigMap\nmetadata: {name: one}\n---\nkind: Secret\nmetadata: {name: two}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a manifest; what is fetched is kept elsewhere, for this test."""
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "manifest.yaml").write_text(TEXT)
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    """The URL that serves the folder."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with serving(handler) as url:
        yield url


def test_a_file_and_a_url_are_read_alike(folder: Path, server: str) -> None:
    objects = read(str(folder / "manifest.yaml"))
    assert [body["kind"] for body in objects] == ["ConfigMap", "Secret"]
    assert read(f"{server}/manifest.yaml") == objects


def test_a_release_is_fetched_once_and_anything_else_each_time(folder: Path, server: str) -> None:
    url = f"{server}/manifest.yaml"
    before = read(url, pinned=True)
    (folder / "manifest.yaml").write_text("kind: Pod\nmetadata: {name: three}\n")
    assert read(url, pinned=True) == before
    assert [body["kind"] for body in read(url)] == ["Pod"]


@pytest.mark.parametrize("name", ["none.yaml", "not a name"])
def test_a_failed_download_is_reported(server: str, name: str) -> None:
    with pytest.raises(ManifestError, match=r"http://127\.0\.0\.1.* cannot be read: "):
        read(f"{server}/{name}")
