"""`render` writes a folder again that it has written, and no other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.commands.render.files import OccupiedError, write
from stacks.commands.render.stages import Rendered
from tests.unit.stacks.test_manifests import content, prod

__all__ = ["prod"]


def test_a_folder_with_other_files_is_refused(prod: Rendered, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(OccupiedError, match="has other files"):
        write(prod, "prod", tmp_path, "x")
    assert (tmp_path / "mine.txt").exists()
    write(prod, "prod", tmp_path / "new", "x")
    (tmp_path / "new" / "mine.txt").touch()
    with pytest.raises(OccupiedError, match="has other files"):
        write(prod, "prod", tmp_path / "new", "x")
    (tmp_path / "new" / "mine.txt").rename(tmp_path / "new" / "50-platform" / "mine.yaml")
    with pytest.raises(OccupiedError, match="has other files"):
        write(prod, "prod", tmp_path / "new", "x")
    (tmp_path / "new" / "50-platform" / "mine.yaml").unlink()
    write(prod, "prod", tmp_path / "new", "x")


@pytest.mark.parametrize("name", ["mine.yaml", "vision--secret--mine.yaml"])
def test_a_file_of_ones_own_is_kept_even_if_the_kustomization_lists_it(
    prod: Rendered, tmp_path: Path, name: str
) -> None:
    write(prod, "prod", tmp_path, "x")
    mine = tmp_path / "60-tenants" / name
    mine.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: mine, namespace: vision}\n")
    list_resources(tmp_path, lambda listed: [*listed, name])
    whole = content(tmp_path)
    with pytest.raises(OccupiedError, match=f"has other files, such as 60-tenants/{name}: "):
        write(prod, "prod", tmp_path, "x")
    assert content(tmp_path) == whole


@pytest.mark.parametrize("resources", [None, {"a.yaml": 1}, [{"a": 1}], "folder"])
def test_a_folder_with_another_kustomization_is_refused_and_kept(
    prod: Rendered, tmp_path: Path, resources: Any
) -> None:
    write(prod, "prod", tmp_path, "x")
    if resources == "folder":
        (tmp_path / "60-tenants" / "folder").mkdir()
    list_resources(tmp_path, lambda listed: [*listed, "folder"] if resources == "folder" else resources)
    whole = content(tmp_path)
    with pytest.raises(OccupiedError, match="has other files, such as 60-tenants/"):
        write(prod, "prod", tmp_path, "x")
    assert content(tmp_path) == whole


@pytest.mark.parametrize("kept", [0, 8, 200])
def test_a_file_whose_writing_was_stopped_is_written_again(prod: Rendered, tmp_path: Path, kept: int) -> None:
    write(prod, "prod", tmp_path, "x")
    whole = content(tmp_path)
    for file in (tmp_path / "30-rules").glob("*--*.yaml"):
        file.write_bytes(file.read_bytes()[:kept])
    write(prod, "prod", tmp_path, "x")
    assert content(tmp_path) == whole


def list_resources(folder: Path, change: Callable[[list[str]], Any]) -> None:
    file = folder / "60-tenants" / "kustomization.yaml"
    whole = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**whole, "resources": change(whole["resources"])}))


def test_a_folder_whose_readme_is_in_another_encoding_is_refused(prod: Rendered, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes("Größe".encode("latin-1"))
    with pytest.raises(OccupiedError, match="has other files"):
        write(prod, "prod", tmp_path, "x")


@pytest.mark.parametrize("number", [1, 8, 20, 60])
def test_a_folder_whose_writing_was_stopped_is_written_again(
    prod: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write(prod, "prod", tmp_path, "x")
    whole, left = content(tmp_path), iter(range(number))
    unlink = Path.unlink

    def stopped(file: Path) -> None:
        if next(left, None) is None:
            raise PermissionError
        unlink(file)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", stopped)
        with pytest.raises(PermissionError):
            write(prod, "prod", tmp_path, "x")
    write(prod, "prod", tmp_path, "x")
    assert content(tmp_path) == whole
