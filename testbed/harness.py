"""Pulumi projects for tests: the real engine, their own state, and the output of each command."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import psutil
import yaml

from core.engine import STATE_AT_END
from local import paths, tools
from local.plugins import Selection, prepare_home
from local.pulumi import ENGINE

PULUMI_SECONDS = 900.0
"""Seconds that one command may take before the test fails with its output."""

TAKE_OVER = {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}
"""Forces conflicts: takes fields back from other managers; without it an update fails with a conflict that names
them."""


_SIGNATURE, _SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
"""The marker of secrets in a state (sdk/go/common/resource/sig in Pulumi)."""


@dataclass(frozen=True)
class Result:
    """The exit code and output of a command."""

    command: str
    code: int
    output: str
    seconds: float


class Project:
    """A project in a folder, with one stack, run with the real engine."""

    seconds = PULUMI_SECONDS
    name = "test"
    """Of the stack."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)

    @classmethod
    def make(cls, folder: Path, program: str | Path, plugins: Selection, **project: Any) -> "Project":
        """A new project with a stack `test`.

        `program` is the code of its `__main__.py`, or a file with it; `project` is added to Pulumi.yaml.
        """
        code = folder / "project" / str(project.get("main", "."))
        code.mkdir(parents=True)
        text = program.read_text() if isinstance(program, Path) else textwrap.dedent(program)
        (code / "__main__.py").write_text(text)
        described = {"name": "shop", "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}}, **project}
        (folder / "project" / "Pulumi.yaml").write_text(yaml.safe_dump(described))
        return cls.existing(folder / "project", folder, plugins)

    @classmethod
    def existing(cls, project: Path, folder: Path, plugins: Selection) -> "Project":
        """A new stack `test` of a project that exists. `folder`: for its state, and for Pulumi's own files."""
        (folder / "state").mkdir()
        home = folder / "home"
        prepare_home(home, plugins)
        made = cls(
            project,
            {
                **ENGINE,
                **os.environ,
                **plugins.environment,
                "PULUMI_HOME": str(home),
                "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
                "PULUMI_CONFIG_PASSPHRASE": "correct horse battery staple",
            },
        )
        made.pulumi("stack", "init", "test")
        return made

    def start(self, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> "subprocess.Popen[str]":
        """A command that runs while the test continues, and that the test may kill."""
        return self._start([str(tools.PULUMI.program("pulumi")), *arguments, "--non-interactive"], environment)

    def start_recovery(self, *arguments: str) -> "subprocess.Popen[str]":
        """`ray-platform recover`, which ends with `pulumi up`."""
        options = () if "--state-only" in arguments else ("--", "--skip-preview", "--non-interactive")
        return self._start_ray_platform("recover", self.name, "--yes", *arguments, *options)

    def _start_ray_platform(
        self, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})
    ) -> "subprocess.Popen[str]":
        path = os.pathsep.join([str(tools.PULUMI.program("pulumi").parent), self.environment["PATH"]])
        found = {"PATH": path, "PYTHONPATH": self._with_checkout(), **environment}
        return self._start([sys.executable, "-m", "stacks", *arguments], found)

    def import_checkout(self) -> None:
        """Lets a program in another folder import this checkout's packages."""
        self.environment["PYTHONPATH"] = self._with_checkout()

    def _with_checkout(self) -> str:
        return paths.first_on_python_path(paths.ROOT, self.environment)

    def _start(self, command: list[str], environment: Mapping[str, str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def pulumi(
        self, *arguments: str, fails: bool = False, environment: Mapping[str, str] = MappingProxyType({})
    ) -> Result:
        """Runs a command; fails the test, with its whole output, unless it ends as expected."""
        process = self.start(*arguments, environment={**STATE_AT_END, **environment})
        return self._ended(" ".join(["pulumi", *arguments]), process, fails, self.seconds)

    def ray_platform(self, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> Result:
        """A command of `ray-platform`; fails the test, with its whole output, unless it succeeds."""
        process = self._start_ray_platform(*arguments, environment=environment)
        return self._ended(" ".join(["ray-platform", *arguments]), process, False, self.seconds)

    def recover(self, *arguments: str, fails: bool = False) -> Result:
        """`ray-platform recover`; fails the test unless it ends as expected."""
        # It runs four commands of Pulumi.
        return self._ended("ray-platform recover", self.start_recovery(*arguments), fails, 4 * self.seconds)

    def _ended(self, shown: str, process: "subprocess.Popen[str]", fails: bool, seconds: float) -> Result:
        begin = time.monotonic()
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate()
            raise AssertionError(f"`{shown}` took more than {seconds:.0f} s:\n{output}") from None
        result = Result(shown, process.returncode, output, time.monotonic() - begin)
        print(f"\n$ {shown}   # exit code {result.code}, {result.seconds:.1f} s\n{output}")  # shown when a test fails
        assert (result.code != 0) == fails, f"`{shown}` ended with {result.code}:\n{output}"
        return result

    def up(self, *, fails: bool = False, environment: Mapping[str, str] = MappingProxyType({})) -> Result:
        """`pulumi up` without the preview."""
        return self.pulumi("up", "--yes", "--skip-preview", fails=fails, environment=environment)

    def killed(self, reached: Callable[[], bool], command: "subprocess.Popen[str] | None" = None) -> None:
        """Kills a command (by default `pulumi up`) with all its child processes (SIGKILL) once `reached` is true, so
        that the state lacks the result of the current step. Fails the test if the command ends before."""
        update = command or self.start("up", "--yes", "--skip-preview")
        while not reached():
            assert update.poll() is None, update.communicate()[0]
            time.sleep(0.02)
        process = psutil.Process(update.pid)
        process.suspend()
        for each in [*process.children(recursive=True), process]:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        update.communicate()

    def changes_nothing(self, refreshed: bool = False) -> Result:
        """Fails the test if `pulumi up` would change anything. Changed outputs do not count, but are in the result.

        `refreshed`: after a `pulumi refresh`, which this command includes without saving its result.
        """
        return self.pulumi("preview", "--diff", "--expect-no-changes", *(["--refresh"] if refreshed else []))

    def configure(self, key: str, value: str, *arguments: str) -> None:
        """Sets a value in the stack file, as an editor does; with arguments by `pulumi config set`.

        That command also loads the state, which may be half written after a kill.
        """
        if arguments:
            self.pulumi("config", "set", key, value, *arguments)
            return
        file = self.folder / f"Pulumi.{self.name}.yaml"
        content = (yaml.safe_load(file.read_text()) if file.exists() else None) or {}
        content.setdefault("config", {})[f"{self._project}:{key}"] = value
        file.write_text(yaml.safe_dump(content))

    def setting(self, key: str) -> str:
        """`pulumi config get`."""
        return self.pulumi("config", "get", key).output.strip()

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs, secrets as `[secret]`, as `pulumi stack output --json` shows them."""
        [stack] = [each for each in self.resources() if each["type"] == "pulumi:pulumi:Stack"]
        return {name: _without_secrets(value) for name, value in stack.get("outputs", {}).items()}

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the state, as `pulumi stack export` shows them, without starting Pulumi.

        The file's layout is that of Pulumi's backends for files (pkg/backend/diy); a stack has one file.
        """
        [file] = (self.states / ".pulumi" / "stacks" / self._project).glob(f"{self.name}.json")
        latest = json.loads(file.read_text())["checkpoint"]["latest"] or {}
        return list(latest.get("resources") or [])

    def locked(self) -> set[str]:
        """The stacks of the backend that a command has locked."""
        return {file.parent.name for file in (self.states / ".pulumi" / "locks").rglob("*.json")}

    @property
    def states(self) -> Path:
        """The folder of the backend."""
        return Path(urlsplit(self.environment["PULUMI_BACKEND_URL"]).path)

    @property
    def _project(self) -> str:
        return str(yaml.safe_load((self.folder / "Pulumi.yaml").read_text())["name"])

    def files(self) -> str:
        """The content of all files: the state with its history and backups, and the project's own."""
        found = [file for root in (self.folder, self.states) for file in root.rglob("*") if file.is_file()]
        return "\n".join(file.read_text(errors="replace") for file in found)


def _without_secrets(value: Any) -> Any:
    """A value of a state with `[secret]` for each secret."""
    if isinstance(value, list):
        return [_without_secrets(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get(_SIGNATURE) == _SECRET:
        return "[secret]"
    return {name: _without_secrets(each) for name, each in value.items()}
