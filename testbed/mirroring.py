"""Mirrors of images, filled by the lines of docs/manifests.md, where no registry of the internet can be reached.

Upstream is a registry on this machine. It has the images of the others, below their names.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from local import paths

PAGE = paths.ROOT / "docs" / "manifests.md"

PROGRAMS = ("docker-registry", "jq", "skopeo")
"""They are in Debian's packages of the same names."""


def missing() -> list[str]:
    """The programs that a mirror needs and this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def serving(folder: Path, address: str) -> list[str | Path]:
    """The command that serves an empty registry at an address. `folder`: for its files; created."""
    folder.mkdir()
    settings = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder)}},
        "http": {"addr": address},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    return ["docker-registry", "serve", config]


def documented(file: Path) -> str:
    """The lines of the page that fill a mirror, for a stack file."""
    (lines,) = re.findall(r"(?:^    .*\n)*^    .*skopeo copy.*\n", PAGE.read_text(), re.MULTILINE)
    return textwrap.dedent(lines).replace(".venv/bin/python", sys.executable).replace(" prod ", f" {file} ")


def fill(
    file: Path, home: Path, upstream: str, registries: Iterable[str], mirror: str, inside: Sequence[str | Path] = ()
) -> "subprocess.CompletedProcess[str]":
    """Runs the lines of the page.

    In `home` its settings send it upstream for these registries, and let it speak plain HTTP. `inside`: the command
    that runs them elsewhere, such as in another network.
    """
    settings = home / ".config" / "containers" / "registries.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    sent = [
        f'[[registry]]\nprefix = "{each}"\nlocation = "{upstream}/{each}"\ninsecure = true\n' for each in registries
    ]
    settings.write_text("\n".join([*sent, f'[[registry]]\nlocation = "{mirror}"\ninsecure = true\n']))
    command = [*inside, "bash", "-o", "pipefail", "-c", documented(file)]
    environment = {**os.environ, "HOME": str(home), "PATH": f"{paths.ROOT / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=paths.ROOT, env=environment, capture_output=True, text=True, check=False)


def copy(source: str, target: str) -> None:
    """Copies an image with all its architectures; both are names of skopeo, with the transport."""
    command = ["skopeo", "--insecure-policy", "copy", "--all", "--dest-tls-verify=false", source, target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
