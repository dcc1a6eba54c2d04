"""Pulumi projects as tests use them: the real engine, a state of their own, and what each command printed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from local import tools
from local.plugins import Selection
from local.pulumi import ENGINE, prepare_home

PULUMI_SECONDS = 180.0
"""How long one command may take before the test fails with what it has printed."""

ADOPT = {"PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true", "PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}
"""Takes objects that exist into the state; without it an update fails with "already exists"."""

TAKE_OVER = {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}
"""Takes fields back from whoever changed them; without it an update fails with a conflict that names the manager."""


STATE_AT_END = {"PULUMI_SKIP_CHECKPOINTS": "true"}
"""The state is written once, when the command ends, and not at every step, which is half of the work on KubeRay's CRDs.
What the state holds then is the same; only a command that is killed on its way needs the steps before."""


@dataclass(frozen=True)
class Result:
    """How a command ended and what it printed."""

    command: str
    code: int
    output: str
    seconds: float


class Project:
    """A project in a folder, with one stack, run with the real engine."""

    seconds = PULUMI_SECONDS

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
        (folder / "state").mkdir()
        home = folder / "home"
        prepare_home(home, plugins)
        made = cls(
            folder / "project",
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
        """A command that runs while the test goes on, and that the test may kill."""
        return subprocess.Popen(
            [tools.PULUMI.program("pulumi"), *arguments, "--non-interactive"],
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
        """Runs a command; fails the test, with all that it printed, unless it ends as it should."""
        shown = " ".join(["pulumi", *arguments])
        begin = time.monotonic()
        process = self.start(*arguments, environment={**STATE_AT_END, **environment})
        try:
            output, _ = process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate()
            raise AssertionError(f"`{shown}` took more than {self.seconds:.0f} s:\n{output}") from None
        result = Result(shown, process.returncode, output, time.monotonic() - begin)
        print(f"\n$ {shown}   # exit code {result.code}, {result.seconds:.1f} s\n{output}")  # shown when a test fails
        assert (result.code != 0) == fails, f"`{shown}` ended with {result.code}:\n{output}"
        return result

    def up(self, *, fails: bool = False, environment: Mapping[str, str] = MappingProxyType({})) -> Result:
        """`pulumi up` without the preview."""
        return self.pulumi("up", "--yes", "--skip-preview", fails=fails, environment=environment)

    def killed(self, come: Callable[[], bool], *, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        """An `up` that is killed (SIGKILL) once that has come: the engine cannot tell its state what it was doing."""
        update = self.start("up", "--yes", "--skip-preview", environment=environment)
        while not come():
            assert update.poll() is None, update.communicate()[0]
            time.sleep(0.02)
        update.kill()
        update.communicate()

    def release(self) -> None:
        """After an update was killed: takes its lock away, and takes from the cluster what the state knows."""
        self.pulumi("cancel", "--yes")
        self.pulumi("refresh", "--yes", "--skip-preview", "--clear-pending-creates")

    def changes_nothing(self) -> None:
        """Fails the test if `pulumi up` would change anything."""
        self.pulumi("preview", "--diff", "--expect-no-changes")

    def configure(self, key: str, value: str, *arguments: str) -> None:
        """`pulumi config set`."""
        self.pulumi("config", "set", key, value, *arguments)

    def setting(self, key: str) -> str:
        """`pulumi config get`."""
        return self.pulumi("config", "get", key).output.strip()

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs, secrets as `[secret]`."""
        return dict(json.loads(self.pulumi("stack", "output", "--json").output))

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the state."""
        exported = json.loads(self.pulumi("stack", "export").output)
        return list(exported["deployment"].get("resources") or [])

    def files(self) -> str:
        """All that lies in files: the state with its history and backups, and the project's own."""
        roots = [self.folder, Path(self.environment["PULUMI_BACKEND_URL"].removeprefix("file://"))]
        found = [file for root in roots for file in root.rglob("*") if file.is_file()]
        return "\n".join(file.read_text(errors="replace") for file in found)
