"""An image: its name, its content, and its archive in the cache."""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import paths
from local.commands import run
from local.progress import Report, step
from local.tools import Tool

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The names of architectures in images, by the kernel's names."""

UNUSED_SECONDS = 7 * 24 * 3600.0
"""An archive that was not used for this long is removed when another of its image is built. Ray's has 550 MB."""


@dataclass(frozen=True)
class Image:
    """A recipe for an image of one layer.

    Fields: `name` is the archive's; `reference` the image's name in pods, with its registry; `config` the part of the
    image's configuration that decides how it runs (OCI image-spec, config.md); `fill` writes the files into a folder;
    `pins` returns all values that determine these files; `tools` have programs in it.
    """

    name: str
    reference: str
    config: Mapping[str, Any]
    fill: Callable[[Path, Report], None]
    pins: Callable[[], str]
    tools: tuple[Tool, ...] = ()

    @property
    def archive(self) -> Path:
        """The image in the format of `docker save`. Another recipe has another file."""
        recipe = json.dumps([self.reference, dict(self.config), self.pins()], sort_keys=True)
        return paths.cache() / "images" / f"{self.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}.tar"

    def build(self) -> None:
        """Creates the archive if it is missing, and removes unused ones of other recipes.

        Raises:
            RehearsalError: a step failed; with its output.
        """
        with self.held():
            self._remove_unused()

    @contextmanager
    def held(self) -> Iterator[Path]:
        """The archive, created if it is missing. It is locked against removal meanwhile.

        A second process that needs the same archive waits until the first has created it.

        Raises:
            RehearsalError: a step failed; with its output.
        """
        archive = self.archive
        archive.parent.mkdir(parents=True, exist_ok=True)
        with _lock(archive).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            while not archive.is_file():
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not archive.is_file():
                    with step(f"Building image {self.reference}") as report:
                        self._build(archive, report)
                fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(_lock(archive))
            yield archive

    def _remove_unused(self) -> None:
        # Not at once: another checkout, with another recipe, may use the same cache.
        others = self.archive.parent.glob(f"{self.name}-{'[0-9a-f]' * 12}.lock")
        for file in others:
            if time.time() - file.stat().st_mtime < UNUSED_SECONDS:
                continue
            with file.open("a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                file.with_suffix(".tar").unlink(missing_ok=True)
                shutil.rmtree(_scratch(file), ignore_errors=True)

    def _build(self, archive: Path, report: Report) -> None:
        scratch = _scratch(archive)
        shutil.rmtree(scratch, ignore_errors=True)  # of a build that was killed
        umask = os.umask(0o022)  # the users of pods must be able to read it
        try:
            files = scratch / "files"
            files.mkdir(parents=True)
            self.fill(files, report)
            report(0.9, "packing")
            self._pack(files, scratch)
            (scratch / "image.tar").rename(archive)
        finally:
            os.umask(umask)
            shutil.rmtree(scratch, ignore_errors=True)

    def _pack(self, files: Path, scratch: Path) -> None:
        # Names are sorted and times are removed, so that the same files are the same layer.
        run("tar", "--numeric-owner", "--sort=name", "--mtime=@0", "-C", files, "-cf", scratch / "layer.tar", ".")
        with (scratch / "layer.tar").open("rb") as layer:
            digest = hashlib.file_digest(layer, "sha256").hexdigest()
        config = json.dumps(
            {
                "architecture": ARCHITECTURES[platform.machine()],
                "os": "linux",
                "config": dict(self.config),
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            }
        )
        name = f"{hashlib.sha256(config.encode()).hexdigest()}.json"
        (scratch / name).write_text(config)
        manifest = [{"Config": name, "RepoTags": [self.reference], "Layers": ["layer.tar"]}]
        (scratch / "manifest.json").write_text(json.dumps(manifest))
        run("tar", "-C", scratch, "-cf", scratch / "image.tar", "manifest.json", name, "layer.tar")


def _lock(archive: Path) -> Path:
    """The lock file that all users of an archive share. Its modification time is the time of the last use."""
    return archive.with_suffix(".lock")


def _scratch(archive: Path) -> Path:
    """The folder in which an archive is created."""
    return archive.with_suffix(".building")
