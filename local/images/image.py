"""An image: its name, what is in it, and the archive in the cache that holds it."""

import fcntl
import hashlib
import json
import platform
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import paths
from local.commands import run
from local.progress import Report, step

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What images call the machines that the kernel names."""


@dataclass(frozen=True)
class Image:
    """A recipe for an image of one layer.

    Fields: `name` is the archive's; `reference` what pods call the image, with its registry; `config` the part of the
    image's configuration that says how it runs (OCI image-spec, config.md); `fill` puts the files into a folder;
    `pins` tells all that decides which files these are.
    """

    name: str
    reference: str
    config: Mapping[str, Any]
    fill: Callable[[Path, Report], None]
    pins: Callable[[], str]

    @property
    def archive(self) -> Path:
        """The image as `docker save` would write it. Another recipe is another file."""
        recipe = json.dumps([self.reference, dict(self.config), self.pins()], sort_keys=True)
        return paths.cache() / "images" / f"{self.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}.tar"

    def build(self) -> None:
        """Make the archive if it is not there; a second process that wants it waits and finds it there.

        Raises:
            RehearsalError: a step failed; with what was said.
        """
        if self.archive.is_file():
            return
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        with self.archive.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.archive.is_file():
                with step(f"Building image {self.reference}") as report:
                    self._build(report)

    def _build(self, report: Report) -> None:
        scratch = Path(tempfile.mkdtemp(prefix=f".{self.name}-", dir=self.archive.parent))
        scratch.chmod(0o755)
        try:
            files = scratch / "files"
            files.mkdir()
            self.fill(files, report)
            report(0.9, "packing")
            self._pack(files, scratch)
            (scratch / "image.tar").rename(self.archive)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _pack(self, files: Path, scratch: Path) -> None:
        # Names sorted and no times, so that the same files are the same layer.
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
