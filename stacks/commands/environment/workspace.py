"""The Pulumi stacks of one environment, through Pulumi's Automation API: all read the environment's one stack file."""

import json
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pulumi import automation

from components.pulumi_internals import select_mode
from core.engine import STATE_AT_END
from core.environment import environment_of
from core.problems import StackFileError
from core.stack_file import FILE, PREFIX, PULUMIS_OWN, as_yaml
from stacks.load import plain_values
from stacks.objects.cml import API_KEY
from stacks.program.config import BESIDE_FILE

ROOT = Path(__file__).resolve().parents[3]
"""The folder with Pulumi.yaml."""

State = dict[str, Any]
"""The output of `pulumi stack export`."""


class StacksError(Exception):
    """The environment's stacks cannot be used; the text has the reason and what to do."""


class _Workspace(automation.LocalWorkspace):
    def select_stack(self, stack_name: str) -> None:
        """Does not change the user's selected stack: each command names its stack."""


class _Stack(automation.Stack):
    """A stack whose commands report by events alone.

    After each command the Automation API would read outputs, with their secrets, and history: three more processes.
    """

    def outputs(self) -> automation.OutputMap:
        return {}

    def info(self, show_secrets: bool = True) -> automation.UpdateSummary | None:
        return automation.UpdateSummary("", datetime.now(UTC), "", {}, {}, "")


class Stacks:
    def __init__(self, environment: str, file: Path) -> None:
        """`file`: the stack file. Raises StacksError if there is no program, or `pulumi` is missing or too old."""
        if not (ROOT / "Pulumi.yaml").is_file():
            raise StacksError(
                f"this command runs ray-platform's own program, and {ROOT} has none: use a checkout of ray-platform, "
                "or `pulumi` itself for a program of yours"
            )
        self.environment, self.file = environment, file.resolve()
        try:
            self._workspace = _Workspace(work_dir=str(ROOT))
        except FileNotFoundError:
            raise StacksError(
                "`pulumi` is not on the PATH: install it (https://www.pulumi.com/docs/install/)"
            ) from None
        except automation.InvalidVersionError as error:
            raise StacksError(str(error)) from error

    @cached_property
    def _values(self) -> dict[str, Any]:
        return _parsed(self.file)

    def existing(self) -> Collection[str]:
        """Names of the existing stacks, written like `environment`. Raises StacksError."""
        try:
            listed = [each.name for each in self._workspace.list_stacks()]
        except automation.CommandError as error:
            raise StacksError(f"the stacks cannot be listed: {_last_line(error)}") from error
        # Of the user's own organization Pulumi lists names alone, of another one `ORGANIZATION/NAME`; the environment
        # may be `ORGANIZATION/PROJECT/NAME`.
        owner, slash, own = self.environment.rpartition("/")
        organization = owner.partition("/")[0]
        of_others = {name.rpartition("/")[2] for name in listed if name.startswith(f"{organization}/")}
        found = of_others or {name for name in listed if "/" not in name}
        mine = {f"{owner}{slash}{name}" for name in found if environment_of(name) == own}
        if self.environment not in mine:
            raise StacksError(f"there is no stack {self.environment}: run `pulumi stack init {own}`")
        return mine

    def stack(self, name: str, *, preview: bool = False) -> automation.Stack:
        """`preview`: for previews alone."""
        return _Stack(name, self._previewing if preview else self._workspace, select_mode())

    @cached_property
    def _previewing(self) -> _Workspace:
        command = self._workspace.pulumi_command
        return _Workspace(work_dir=str(ROOT), env_vars=STATE_AT_END, pulumi_command=command)

    def create(self, name: str) -> None:
        """Creates an empty stack, whose secrets are encrypted like the environment's. Raises StacksError.

        Pulumi writes the encryption settings into a file of the stack's name. So this runs in a folder of its own,
        whose file has the environment's encryption settings already.
        """
        settings = self._values
        encryption = {key: settings[key] for key in PULUMIS_OWN if key in settings and key != "environment"}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
            (folder / f"Pulumi.{name.rpartition('/')[2]}.yaml").write_text(yaml.safe_dump(encryption))
            provider = settings.get("secretsprovider", "default")
            self._run("init", name, "--no-select", "--secrets-provider", provider, folder=folder)

    def remove(self, name: str) -> None:
        """Removes a stack without resources. Raises StacksError."""
        # A file of the stack's name does not belong to this program.
        self._run("rm", name, "--yes", "--preserve-config")

    def read(self, name: str, *, show_secrets: bool = False) -> State:
        """A stack's state. With secrets in plain text it must stay in memory. Raises StacksError."""
        state: State = json.loads(self._run("export", name, *(["--show-secrets"] if show_secrets else [])))
        return state

    def outputs(self, name: str) -> dict[str, Any]:
        """A stack's outputs, secrets hidden. Raises StacksError."""
        outputs: dict[str, Any] = json.loads(self._run("output", name, "--json"))
        return outputs

    def write(self, name: str, state: State) -> None:
        """Replaces a stack's state; Pulumi encrypts plain-text secrets. Raises StacksError.

        The Automation API would write the state into a file first, including plain-text secrets.
        """
        command = [self._workspace.pulumi_command.command, "stack", "import", "--stack", name, "--non-interactive"]
        done = subprocess.run(command, input=json.dumps(state), cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StacksError(f"the state of {name} was not written: {done.stderr.strip()}")

    def _run(self, command: str, name: str, *arguments: str, folder: Path = ROOT) -> str:
        """Runs `pulumi stack COMMAND` on a stack. Returns its output."""
        try:
            done = self._workspace.pulumi_command.run(["stack", command, "--stack", name, *arguments], str(folder), {})
        except automation.CommandError as error:
            raise StacksError(f"`pulumi stack {command}` failed for {name}: {_last_line(error)}") from error
        return done.stdout


def _last_line(error: Exception) -> str:
    return next((line for line in reversed(str(error).splitlines()) if line.strip()), "no reason given")


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return plain_values(file)
    except StackFileError as error:
        raise StacksError(str(error)) from error


@contextmanager
def configuration_of(file: Path) -> Iterator[Path]:
    """A configuration file for Pulumi that names the stack file, and contains its keys that other programs read.

    Pulumi passes the configuration in one environment variable, which Linux limits to 128 KiB: that is some hundred
    tenants.
    """
    settings = _parsed(file)
    configured = settings.get("config") or {}
    # Pulumi Cloud encrypts with a key of each stack, so that those of tenants cannot decrypt the key of Cloudera ML.
    own = (BESIDE_FILE,) if f"{PREFIX}split" in configured else (BESIDE_FILE, API_KEY)
    passed = {f"{PREFIX}{key}" for key in own}
    config = {key: value for key, value in configured.items() if key in passed or not key.startswith(PREFIX)}
    config[f"{PREFIX}{FILE}"] = str(file.resolve())
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / file.name
        made.write_text(as_yaml({**settings, "config": config}), encoding="utf-8")
        yield made
