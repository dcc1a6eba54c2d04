"""How an image is packed, and when it is built anew."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from local.images import IMAGES, RAY, Image
from local.progress import Report
from local.tools import KUBERAY_STATIC

pytestmark = pytest.mark.unit


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


def test_an_image_is_built_once_and_another_recipe_is_another_file() -> None:
    times: list[str] = []
    image = _image({}, times=times)
    image.build()
    image.build()
    assert times == ["built"]
    assert len({image.archive, _image({"User": "1"}).archive, _image({}, content="bye").archive}) == 3


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    def fail(_files: Path, _report: Report) -> None:
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        Image("example", "localhost/example:1", {}, fail, lambda: "").build()
    assert [file for file in (cache / "images").iterdir() if file.suffix != ".lock"] == []


def test_images_have_the_names_that_stacks_use() -> None:
    names = [image.reference for image in IMAGES]
    assert f"quay.io/kuberay/operator:{KUBERAY_STATIC.version}" in names
    assert RAY.reference == "docker.io/rayproject/ray:2.60.0"


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()
