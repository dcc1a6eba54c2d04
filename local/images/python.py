"""A Python environment in an image: the distribution's Python, and packages of Python's index."""

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path

from uv import find_uv_bin

from local.commands import run
from local.images import distribution
from local.images.distribution import install, run_in
from local.progress import Report


def fill(files: Path, report: Report, home: str, packages: Sequence[str], pins: Path, *options: str) -> Path:
    """Fills a folder with the distribution, some of its packages, and at `home` an environment with the packages of
    `pins`. `options`: further ones of `uv pip install`.

    Returns the environment's site-packages. Raises RehearsalError with the output of the failed step.
    """
    report(0.0, "packages of the distribution")
    install(files, ("python3", "python3-venv", *packages))
    report(0.4, "packages of Python")
    run_in(files, "python3", "-m", "venv", "--without-pip", home)
    (library,) = (files / home.strip("/") / "lib").glob("python3.*")
    run(
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        f"--python-version={library.name.removeprefix('python')}",
        f"--python-platform={platform.machine()}-manylinux_2_34",
        f"--prefix={files}{home}",
        "--link-mode=copy",
        "--require-hashes",
        f"--requirements={pins}",
        *options,
    )
    for script in (files / home.strip("/") / "bin").iterdir():
        _set_interpreter(script, home)
    return library / "site-packages"


def compile_all(files: Path, report: Report, home: str) -> None:
    """Adds the byte-code, without which every process compiles its imports.

    Times are not compared, because the image's layer has none. Files that are not valid Python, such as examples in
    some packages, are skipped.
    """
    report(0.7, "byte-code")
    (library,) = (files / home.strip("/") / "lib").glob("python3.*")
    run_in(
        files,
        f"{home}/bin/python",
        "-m",
        "compileall",
        "-qq",
        f"-j{os.cpu_count() or 1}",
        "--invalidation-mode=unchecked-hash",
        f"/usr/lib/{library.name}",
        f"{home}/lib/{library.name}/site-packages",
        fails=True,
    )


def environment(home: str, *more: str) -> list[str]:
    """Environment variables of the image with which programs of the environment are found."""
    path = f"{home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return [f"PATH={path}", "LANG=C.UTF-8", *more]


def recipe() -> str:
    """All values that determine the files, beside the packages."""
    return f"{Path(__file__).read_text()}{distribution.pins()}"


def _set_interpreter(script: Path, home: str) -> None:
    """Makes a script run in the image: installed from outside, it names the Python that installed it."""
    if script.is_symlink() or not script.read_bytes().startswith(b"#!"):
        return
    first, _, rest = script.read_text().partition("\n")
    if re.search(r"/python[0-9.]*$", first):
        script.write_text(f"#!{home}/bin/python\n{rest}")
