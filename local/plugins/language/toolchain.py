"""The Python of a project: the `runtime.options` of its Pulumi.yaml, as Pulumi documents them.

https://www.pulumi.com/docs/iac/languages-sdks/python/#toolchains
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from google.protobuf import json_format
from pulumi.runtime.proto import language_pb2

from local.plugins.language.errors import HostError

ToolchainName = Literal["pip", "poetry", "uv"]
TypeChecker = Literal["mypy", "pyright"]

_LOCKED: tuple[ToolchainName, ...] = ("uv", "poetry")
"""The toolchains that are detected by their lock files."""


@dataclass(frozen=True)
class Toolchain:
    """The Python environment of one project."""

    name: ToolchainName
    directory: Path
    """The folder of the program."""
    virtualenv: Path | None
    """Its virtual environment; None: the Python on the PATH."""
    typechecker: TypeChecker | None = None

    def exists(self) -> bool:
        """Whether there is a Python to run: a virtual environment is created when it is first needed."""
        return self.virtualenv is None or _python_in(self.virtualenv).is_file()

    def python(self) -> str:
        """The interpreter.

        Raises:
            HostError: there is none.
        """
        if self.virtualenv is None:
            return _python_on_path()
        if not self.exists():
            raise HostError(
                f"the virtual environment of this project is missing: {self.virtualenv} (from 'virtualenv' under "
                "'runtime.options' in Pulumi.yaml). Run `pulumi install` to make it."
            )
        return str(_python_in(self.virtualenv))

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the virtual environment activated, so that tools the program starts come from it too."""
        if self.virtualenv is None:
            return dict(base)
        path = os.pathsep.join(filter(None, [str(self.virtualenv / "bin"), base.get("PATH")]))
        return {k: v for k, v in base.items() if k != "PYTHONHOME"} | {
            "PATH": path,
            "VIRTUAL_ENV": str(self.virtualenv),
        }

    def install_commands(self) -> list[list[str]]:
        """The commands that create the environment and install the project's dependencies.

        Raises:
            HostError: the tool for it is missing.
        """
        if self.name == "uv":
            return [[_tool("uv"), "sync"]]
        if self.name == "poetry":
            return [[_tool("poetry"), "install", "--no-ansi"]]
        commands = []
        python = _python_on_path()
        if self.virtualenv is not None:
            if not self.exists():
                commands.append([python, "-m", "venv", str(self.virtualenv)])
            python = str(_python_in(self.virtualenv))
        if (self.directory / "requirements.txt").is_file():
            commands.append([python, "-m", "pip", "install", "-r", "requirements.txt"])
        return commands


def resolve(info: language_pb2.ProgramInfo, *, plugin: bool = False) -> Toolchain:
    """The environment of a program, or with `plugin` of a plugin, which never uses the Python on the PATH.

    Without a `toolchain`, a uv.lock or poetry.lock in or above the program's folder decides; otherwise it is pip.

    Raises:
        HostError: an unknown option.
    """
    options = json_format.MessageToDict(info.options)
    directory = Path(info.program_directory)
    checker = _choice(options, "typechecker", get_args(TypeChecker))
    named = _choice(options, "toolchain", get_args(ToolchainName))
    locked = [tool for tool in _LOCKED if _upwards(directory, f"{tool}.lock")]
    name: ToolchainName = named or (locked[0] if locked else "pip")
    option = options.get("virtualenv") or ""
    if not isinstance(option, str):
        raise HostError(f"'virtualenv' under 'runtime.options' is {option!r}; it must be the path of a folder")

    virtualenv: Path | None
    if name == "poetry":
        virtualenv = _poetry_environment(directory)
    elif name == "uv":
        beside = _upwards(directory, "uv.lock") or _upwards(directory, "pyproject.toml") or directory
        virtualenv = Path(info.root_directory) / (option or beside / os.environ.get("UV_PROJECT_ENVIRONMENT", ".venv"))
    elif option or plugin:
        virtualenv = Path(info.root_directory) / (option or "venv")
    else:
        virtualenv = None
    return Toolchain(name=name, directory=directory, virtualenv=virtualenv, typechecker=checker)


def _choice(options: Mapping[str, object], key: str, allowed: tuple[str, ...]) -> Any:
    value = options.get(key)
    if value is not None and value not in allowed:
        raise HostError(f"'{key}' under 'runtime.options' is {value!r}; allowed are {', '.join(allowed)}")
    return value


def _python_in(virtualenv: Path) -> Path:
    return virtualenv / "bin" / "python"


def _python_on_path() -> str:
    names = [os.environ["PULUMI_PYTHON_CMD"]] if os.environ.get("PULUMI_PYTHON_CMD") else ["python3", "python"]
    for name in names:
        if found := shutil.which(name):
            return found
    raise HostError(f"found no {' or '.join(names)} on the PATH; install Python or set PULUMI_PYTHON_CMD to one")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise HostError(f"the project's toolchain is {name}, but there is no `{name}` on the PATH; install it")
    return found


def _upwards(start: Path, name: str) -> Path | None:
    """The nearest folder, from `start` up, that has a file `name`."""
    return next((folder for folder in (start, *start.parents) if (folder / name).is_file()), None)


def _poetry_environment(directory: Path) -> Path:
    answer = subprocess.run(
        [_tool("poetry"), "env", "info", "--path"], cwd=directory, capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise HostError(f"poetry knows no environment for {directory}; run `poetry install` there")
    return Path(answer.stdout.strip())
