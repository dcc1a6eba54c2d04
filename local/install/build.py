"""Builds tools with ordinary `go build` from the modules pinned in local/tools/*/go.mod."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from local.errors import RehearsalError
from local.progress import Report, step
from local.tools import LINKING, Tool

FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false")
"""The linker drops the debugging information, so the compiler need not make it."""

MEMORY = {"GOGC": "off", "GOMEMLIMIT": "1GiB"}
"""The compiler and the linker collect garbage only from a gibibyte on, which few packages reach: a quarter less CPU
(docs/measurements/tools.md)."""


class Build:
    """Builds all tools."""

    def check(self, tools: Sequence[Tool]) -> None:
        """Every tool needs Go."""
        require_go()

    def install(self, tool: Tool, target: Path, position: str) -> None:
        build(tool, tool.programs, target, position)


def build(tool: Tool, programs: Iterable[str], target: Path, position: str) -> None:
    """Builds these programs of a tool into `target`/bin and copies its files to `target`/share.

    Raises:
        RehearsalError: Go is missing or too old, or a build failed; with the end of the compiler's output.
    """
    programs = list(programs)
    if programs or tool.files:
        require_go()
    if programs:
        with step(f"Building {tool.name} {tool.version} {position}") as report:
            _compile(tool, programs, target / "bin", report)
    _copy_files(tool, target / "share")


def require_go() -> None:
    """Raises RehearsalError if Go is missing."""
    if shutil.which("go") is None:
        raise RehearsalError(
            "Go is not on the PATH; the rehearsal builds Kubernetes, KWOK, KubeRay and Pulumi with it, once. "
            "Install Go 1.24 or newer (https://go.dev/dl, or your system's package) and run the command again; "
            "or take the programs from a mirror, which needs no Go: TOOLS=URL (docs/tools.md)."
        )


def _compile(tool: Tool, programs: list[str], target: Path, report: Report) -> None:
    packages = [tool.programs[program] for program in programs]
    report(0.0, "downloading Go modules")
    total = len(_go(tool, "list", "-deps", *packages).splitlines())
    files = [Path(file).name for file in _go(tool, "list", "-f", "{{.Target}}", *packages).splitlines()]
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in tool.stamps(tool.version).items())])
    done = 0

    def compiled(package: str) -> None:
        nonlocal done
        done += 1
        report(min(done / total, 1.0), package)

    target.mkdir(parents=True, exist_ok=True)
    # All at once, so that they are linked side by side.
    _go(tool, "build", "-v", *FLAGS, "-ldflags", flags, "-o", str(target), *packages, each=compiled)
    for file, program in zip(files, programs, strict=True):
        (target / file).rename(target / program)


def _copy_files(tool: Tool, target: Path) -> None:
    if not tool.files:
        return
    _go(tool, "mod", "download", tool.module)
    module = Path(_go(tool, "list", "-m", "-f", "{{.Dir}}", tool.module).strip())
    for folder in tool.files:
        # Go's module cache is read-only. Copies the contents, not the modes, so that our cache can be removed.
        shutil.copytree(module / folder, target / folder, copy_function=shutil.copyfile)
        for made in (target / folder, *(target / folder).rglob("*")):
            made.chmod(0o755 if made.is_dir() else 0o644)


def _go(tool: Tool, *arguments: str, each: Callable[[str], None] | None = None) -> str:
    """Runs go in the tool's folder and returns its standard output; `each` gets every line of standard error."""
    with tempfile.TemporaryFile("w+") as output:
        run = subprocess.Popen(
            ["go", *arguments],
            cwd=tool.source,
            env={**MEMORY, **os.environ, **LINKING},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = []
        assert run.stderr is not None
        for line in run.stderr:
            lines.append(line.rstrip())
            if each:
                each(lines[-1])
        if run.wait() != 0:
            tail = "\n  ".join(lines[-15:])
            raise RehearsalError(f"go {arguments[0]} of {tool.name} {tool.version} failed:\n  {tail}")
        output.seek(0)
        return output.read()
