"""The image of Ray: the distribution that this machine has, with its Python, and Ray from the Python index.

What KubeRay counts on is there: `ray`, `wget` for the probes, a shell, and a user `ray` with number 1000 and group 100
as in Ray's own images (ray-project/ray, docker/base-deps/Dockerfile). CUDA is not, nor what Ray's images have beside.
"""

import os
import platform
import re
from pathlib import Path

from uv import find_uv_bin

from local.commands import run
from local.images import distribution
from local.images.distribution import install, run_in
from local.images.image import Image
from local.progress import Report

PINS = Path(__file__).with_name("ray.txt")

PACKAGES = ("python3", "python3-venv", "wget", "procps")

HOME = "/opt/ray"
"""The Python environment in the image."""


def _fill(files: Path, report: Report) -> None:
    report(0.0, "packages of the distribution")
    install(files, PACKAGES)
    report(0.4, "packages of Python")
    run_in(files, "python3", "-m", "venv", "--without-pip", HOME)
    (library,) = (files / HOME.strip("/") / "lib").glob("python3.*")
    run(
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        f"--python-version={library.name.removeprefix('python')}",
        f"--python-platform={platform.machine()}-manylinux_2_28",
        f"--prefix={files}{HOME}",
        "--link-mode=copy",
        "--require-hashes",
        f"--requirements={PINS}",
    )
    for script in (files / HOME.strip("/") / "bin").iterdir():
        _set_interpreter(script)
    run_in(files, "useradd", "--create-home", "--uid=1000", "--gid=100", "--shell=/bin/bash", "ray")
    report(0.7, "byte-code")
    # Without it every process of Ray compiles what it imports, which costs half of a cluster's start. Times are not
    # compared, as the layer has none; a file that is no Python, of which some packages have examples, is passed over.
    compiled = (f"/usr/lib/{library.name}", f"{HOME}/lib/{library.name}/site-packages")
    jobs = f"-j{os.cpu_count() or 1}"
    run_in(
        files,
        f"{HOME}/bin/python",
        "-m",
        "compileall",
        "-qq",
        jobs,
        "--invalidation-mode=unchecked-hash",
        *compiled,
        fails=True,
    )


def _set_interpreter(script: Path) -> None:
    """Let a script run in the image: installed from outside, it names the Python that installed it."""
    if script.is_symlink() or not script.read_bytes().startswith(b"#!"):
        return
    first, _, rest = script.read_text().partition("\n")
    if re.search(r"/python[0-9.]*$", first):
        script.write_text(f"#!{HOME}/bin/python\n{rest}")


def _version() -> str:
    pinned = re.search(r"(?m)^ray==(\S+)", PINS.read_text())
    assert pinned is not None
    return pinned[1]


def _pins() -> str:
    return "".join([PINS.read_text(), Path(__file__).read_text(), distribution.pins()])


VERSION = _version()
"""The version of Ray in it."""

RAY = Image(
    "ray",
    f"docker.io/rayproject/ray:{VERSION}",
    {
        "User": "1000:100",
        "WorkingDir": "/home/ray",
        "Env": [
            f"PATH={HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/home/ray",
            "LANG=C.UTF-8",
        ],
    },
    _fill,
    _pins,
)
