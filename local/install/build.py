"""Builds tools with ordinary `go build` from the modules pinned in local/tools/*/go.mod."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from local.commands import run
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
        require_go(tools)

    def install(self, tool: Tool, target: Path, position: str) -> None:
        build(tool, tool.programs, target, position)


def build(tool: Tool, programs: Iterable[str], target: Path, position: str) -> None:
    """Builds these programs of a tool into `target`/bin and copies its files to `target`/share.

    Raises:
        RehearsalError: Go is missing or too old, or a build failed; with the end of the compiler's output.
    """
    programs = list(programs)
    if programs or tool.files:
        require_go([tool])
    if programs:
        with step(f"Building {tool.name} {tool.version} {position}") as report:
            _compile(tool, programs, target / "bin", report)
    _copy_files(tool, target / "share")


def require_go(tools: Iterable[Tool]) -> None:
    """Checks that Go is there, and new enough for these tools unless it gets newer versions of itself.

    Raises:
        RehearsalError: it is missing or too old.
    """
    tool = max(tools, key=lambda each: _numbers(each.go))
    advice = (
        f"Install Go {tool.go} or newer (https://go.dev/dl, or your system's package) and run the command again; "
        "or take the programs from a mirror, which needs no Go: TOOLS=URL (docs/tools.md)."
    )
    if shutil.which("go") is None:
        raise RehearsalError(
            "Go is not on the PATH; the rehearsal builds Kubernetes, KWOK, KubeRay and Pulumi with it, once. " + advice
        )
    # Outside of a module, because inside one Go gets the version that its go.mod requires. Go before 1.21 has no
    # GOTOOLCHAIN.
    version, toolchain = run("go", "env", "GOVERSION", "GOTOOLCHAIN", cwd=Path("/")).splitlines()
    if _numbers(version) < _numbers(tool.go) and not re.search("auto|path", toolchain):
        raise RehearsalError(
            f"{tool.name} needs Go {tool.go} or newer; the one on the PATH is {version} and gets no newer one "
            f"(GOTOOLCHAIN={toolchain}). {advice} Or let Go get it: GOTOOLCHAIN=auto."
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version of Go for comparing: `go1.25.11` is (1, 25, 11), and so is `1.25.11`."""
    found = re.search(r"\d+(\.\d+)+", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _compile(tool: Tool, programs: list[str], target: Path, report: Report) -> None:
    packages = [tool.programs[program] for program in programs]
    tags = f"-tags={','.join(tool.tags)}"
    report(0.0, "downloading Go modules")
    total = len(_go(tool, "list", "-deps", tags, *packages).splitlines())
    files = [Path(file).name for file in _go(tool, "list", "-f", "{{.Target}}", tags, *packages).splitlines()]
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in tool.stamps(tool.version).items())])
    done = 0

    def compiled(package: str) -> None:
        nonlocal done
        done += 1
        report(min(done / total, 1.0), package)

    target.mkdir(parents=True, exist_ok=True)
    # All at once, so that they are linked side by side.
    _go(tool, "build", "-v", *FLAGS, tags, "-ldflags", flags, "-o", str(target), *packages, each=compiled)
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
        process = subprocess.Popen(
            ["go", *arguments],
            cwd=tool.source,
            env={**MEMORY, **os.environ, **LINKING},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = []
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line.rstrip())
            if each:
                each(lines[-1])
        if process.wait() != 0:
            tail = "\n  ".join(lines[-15:])
            raise RehearsalError(f"go {arguments[0]} of {tool.name} {tool.version} failed:\n  {tail}")
        output.seek(0)
        return output.read()
