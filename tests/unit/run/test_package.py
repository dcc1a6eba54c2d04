"""Packing a folder for a run, with Ray's own functions."""

import hashlib
import io
import os
import random
import sys
import zipfile
from pathlib import Path

import pytest

from stacks.commands.run.package import PackageError, pack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "code"
    (made / "lib").mkdir(parents=True)
    (made / "train.py").write_text("import lib.model")
    (made / "lib" / "model.py").write_text("LAYERS = 2")
    return made


def _files(content: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.namelist()


def test_files_that_the_ignore_files_exclude_are_left_out(folder: Path) -> None:
    for name in ("data.csv", "notes.txt"):
        (folder / name).write_text("a")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("a")
    (folder / ".gitignore").write_text("*.csv")
    (folder / ".rayignore").write_text("notes.txt\n.gitignore\n.rayignore")
    assert _files(pack(folder).content) == ["lib/model.py", "train.py"]


def test_the_uri_is_rays_and_depends_on_the_files_alone(folder: Path) -> None:
    package = pack(folder)
    digest = hashlib.sha1(package.content, usedforsecurity=False).hexdigest()
    assert package.uri == f"gcs://_ray_pkg_{digest}.zip"
    os.utime(folder / "train.py", (0, 1_000_000_000))
    assert pack(folder) == package
    (folder / "train.py").write_text("import lib.other")
    assert pack(folder).uri != package.uri


def test_a_package_that_is_too_large_names_its_largest_files(folder: Path) -> None:
    (folder / "model.bin").write_bytes(random.Random(0).randbytes(600 * 2**10))  # noqa: S311
    with pytest.raises(PackageError) as error:
        pack(folder)
    message = str(error.value)
    assert (
        "is 601 KiB when packed, and a run brings at most 512 KiB. The largest files are model.bin (601 KiB),"
        in message
    )
    assert "in .rayignore, and put data into storage or a bucket" in message


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="has no files"):
        pack(tmp_path)


def test_a_python_without_ray_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray._private.runtime_env.packaging", None)
    with pytest.raises(PackageError, match="install one, `pip install ray`"):
        pack(folder)
