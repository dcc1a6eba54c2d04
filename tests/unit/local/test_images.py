"""How an image is packed, and when it is built again."""

import hashlib
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from local.images import AHEAD, IMAGES, RAY, RAY_LLM, Image, named
from local.progress import Report
from local.tools import KUBERAY


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _image(config: dict[str, str], content: str = "hello", times: list[str] | None = None) -> Image:
    def fill(files: Path, _report: Report) -> None:
        (files / "program").write_text(content)
        if times is not None:
            times.append("built")

    return Image("example", "localhost/example:1", config, fill, lambda: content)


def test_the_archive_is_what_docker_save_would_write() -> None:
    image = _image({"User": "1000"})
    image.build()
    with tarfile.open(image.archive) as archive:
        (manifest,) = json.loads(_read(archive, "manifest.json"))
        config = json.loads(_read(archive, manifest["Config"]))
        layer = _read(archive, *manifest["Layers"])
    assert manifest["RepoTags"] == ["localhost/example:1"]
    assert config["config"] == {"User": "1000"}
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]


def test_a_narrow_umask_does_not_change_the_image() -> None:
    image = _image({})
    umask = os.umask(0o077)
    try:
        image.build()
    finally:
        os.umask(umask)
    with tarfile.open(image.archive) as archive:
        (manifest,) = json.loads(_read(archive, "manifest.json"))
        with tarfile.open(fileobj=archive.extractfile(*manifest["Layers"])) as layer:
            assert {member.name: oct(member.mode) for member in layer} == {".": "0o755", "./program": "0o644"}


def test_an_image_is_built_once_and_another_recipe_is_another_file() -> None:
    times: list[str] = []
    image = _image({}, times=times)
    image.build()
    image.build()
    assert times == ["built"]
    assert len({image.archive, _image({"User": "1"}).archive, _image({}, content="bye").archive}) == 3


def test_the_archive_of_another_recipe_is_removed_after_a_week_without_use() -> None:
    old = _image({}, content="old")
    old.build()
    _image({}, content="new").build()
    assert old.archive.is_file(), "another checkout may still use it"
    _long_ago(old)
    _image({}, content="new").build()
    assert not old.archive.exists()


def test_archives_in_use_and_of_other_images_stay_at_any_age() -> None:
    old, another = _image({}, content="old"), replace(_image({}), name="example-other")
    another.build()
    with old.held() as archive:
        _long_ago(old)
        _long_ago(another)
        _image({}, content="new").build()
        assert archive.is_file()
    assert another.archive.is_file()


def test_the_files_of_a_killed_build_are_removed(cache: Path) -> None:
    image = _image({})
    left = image.archive.with_suffix(".building") / "files"
    left.mkdir(parents=True)
    (left / "half").write_text("x")
    image.build()
    with tarfile.open(image.archive) as archive:
        (manifest,) = json.loads(_read(archive, "manifest.json"))
        with tarfile.open(fileobj=archive.extractfile(*manifest["Layers"])) as layer:
            assert layer.getnames() == [".", "./program"]
    assert [file.suffix for file in sorted((cache / "images").iterdir())] == [".lock", ".tar"]


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    def fail(_files: Path, _report: Report) -> None:
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        Image("example", "localhost/example:1", {}, fail, lambda: "").build()
    assert [file for file in (cache / "images").iterdir() if file.suffix != ".lock"] == []


def test_images_have_the_names_that_stacks_use_and_are_found_by_them() -> None:
    names = [image.reference for image in IMAGES]
    assert f"quay.io/kuberay/operator:{KUBERAY.version}" in names
    assert RAY.reference == "docker.io/rayproject/ray:2.60.0"
    assert named(["rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0", "busybox"]) == [RAY]


def test_the_image_with_vllm_is_built_only_for_a_stack_that_has_it() -> None:
    assert RAY_LLM not in AHEAD
    assert named(["rayproject/ray-llm:2.60.0"]) == [RAY_LLM]


def _long_ago(image: Image) -> None:
    os.utime(image.archive.with_suffix(".lock"), (0, 0))


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()
