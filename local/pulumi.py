"""Runs Pulumi against the rehearsal: its environment, its backend, and an adapted stack file."""

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from core.engine import STATE_AT_END
from core.environment import environment_of
from core.foreground import foreground
from core.problems import StackFileError
from core.stack_file import FILE, PREFIX, as_yaml, stacks_in
from local import paths, tools
from local.checkpoint import Checkpoint
from local.errors import RehearsalError
from local.plugins import Selection, prepare_home
from local.progress import console
from local.rehearsal import Rehearsal
from local.rehearsed_file import adapt
from local.supervision import MARK
from stacks.load import load, plain_values

PROJECT = "ray-platform"
"""The `name` of Pulumi.yaml."""

POLICY_PACK = ("--policy-pack", str(paths.ROOT / "policies"))
"""Arguments of `pulumi preview` and `up` that validate a stack against the project's own rules (docs/policies.md)."""

WRITING = ("up", "destroy", "refresh", "import", "state")
"""Commands that may change the state for a long time; the state is copied before them."""

_OF_ONE_STACK = ("--skip-preview", "--suppress-outputs", "--suppress-progress")
"""Arguments of `pulumi up` that `ray-platform up --yes` does not need."""

ENGINE = {
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    # At its end each command would copy the state twice, to `history` and to `backups` (pulumi 3.276,
    # pkg/backend/diy/state.go: addToHistory, backupStack).
    "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
    # KubeRay's CRDs are a megabyte of properties, of which the engine makes many copies. With Go's default of 100 it
    # spends a third of its time on garbage collection; this value costs 100 MB more memory instead.
    "GOGC": "200",
    # Without it gRPC reports, among the stack's own messages, that the engine has closed a connection at its end.
    "GRPC_VERBOSITY": "ERROR",
}
"""Environment variables of the engine."""


_OF_OTHER_STACKS = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_STACK", "PULUMI_DIY_BACKEND_", "PULUMI_SELF_MANAGED_STATE_")
"""Beginnings of the names of the user's variables that Pulumi would ask before the rehearsal's own, such as an empty
passphrase before a file of one, and of those by which states have other files."""


def environments(run: Path) -> list[str]:
    """The environments whose states are in the folder of a rehearsal."""
    files = (run / "pulumi" / ".pulumi" / "stacks" / PROJECT).glob("*.json")
    return sorted({environment_of(file.stem) for file in files})


class RehearsalStack:
    """A stack of this project whose state is in the rehearsal's folder, encrypted with its own passphrase.

    The stack file itself is never changed. Pulumi reads a copy that is created before each command. It contains the
    salt of the rehearsal's passphrase, and what a rehearsal changes (rehearsed_file.py).
    """

    def __init__(self, rehearsal: Rehearsal, plugins: Selection, stack: str, file: Path | None = None) -> None:
        self.name = stack
        self.file = file or stack_file(stack)
        self._rehearsal = rehearsal
        self._plugins = plugins
        self._folder = rehearsal.run / "pulumi"
        self._checkpoint = Checkpoint(self._folder, PROJECT, stack)
        self.not_waited_for: list[str] = []
        """The jobs and services with `waitFor` that no `up` waits for here; known once it is prepared."""

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment for `pulumi` and its child processes."""
        binaries = [tools.PULUMI.program("pulumi").parent, tools.KUBERNETES.program("kubectl").parent]
        return {
            **ENGINE,
            **{name: value for name, value in os.environ.items() if not name.startswith(_OF_OTHER_STACKS)},
            **self._plugins.environment,
            "PATH": os.pathsep.join([*map(str, binaries), os.environ.get("PATH", "")]),
            "KUBECONFIG": str(self._rehearsal.kubeconfig),
            "PULUMI_HOME": str(self._home),
            # No attribute files beside each file: those that a killed command leaves empty make a state unreadable
            # (stacks/commands/recover/cli.py).
            "PULUMI_BACKEND_URL": f"file://{self._folder}?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self._passphrase),
            "PULUMI_OPTION_STACK": self.name,
            "PULUMI_OPTION_CONFIG_FILE": str(self._copy),
            MARK: str(self._rehearsal.run),
        }

    @property
    def command(self) -> Path:
        return tools.PULUMI.program("pulumi")

    @property
    def split(self) -> bool:
        """Whether its environment is several Pulumi stacks. Raises StackFileError."""
        return load(self.file).split is not None

    def whole(self, *arguments: str) -> list[str]:
        """The command that previews, updates, refreshes or destroys all of the environment; `arguments` are Pulumi's.

        Raises StackFileError.
        """
        if not self.split:
            return [str(self.command), *arguments]
        operation, *others = self._options(arguments)
        return [sys.executable, "-m", "stacks", operation, self.name, *others]

    def _options(self, arguments: Iterable[str]) -> list[str]:
        """Those of Pulumi's arguments that `ray-platform` takes, if the environment is split."""
        return [each for each in arguments if not self.split or each not in _OF_ONE_STACK]

    def prepare(self) -> None:
        """Creates the stack if it is new, and the copy of its file.

        Raises:
            RehearsalError: the stack file is missing, the disk is full, or Pulumi fails; with its output.
        """
        if not self.file.is_file():
            raise missing(self.file)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._checkpoint.check_space()
        if not self._passphrase.is_file():
            _write(self._passphrase, secrets.token_urlsafe(32))
        prepare_home(self._home, self._plugins)
        if not self._salt.is_file():
            # A killed command may have created the stack already.
            _write(self._salt, self._checkpoint.salt or self._create())
        self._copy.write_text(as_yaml(self._rehearsed()), encoding="utf-8")

    def run(self, *arguments: str, check: bool = True, whole: bool = False) -> int:
        """Runs `pulumi` in the checkout on this terminal. Returns its exit status.

        `whole`: on all stacks of the environment.

        Raises:
            RehearsalError: it failed (unless `check` is false), its disk is full, or a part of the cluster ended
                meanwhile.
        """
        self.prepare()
        if arguments[0] in ("destroy", "refresh") and self._interrupted:
            self._recover("--state-only")
        command = self.whole(*arguments) if whole else [str(self.command), *arguments, *self._of_copy(arguments)]
        status = self._run(*command, writes=arguments[0] in WRITING, preview=arguments[0] == "preview")
        if check and status != 0:
            raise RehearsalError(f"pulumi {arguments[0]} failed with exit status {status}; the error is above")
        return status

    def _of_copy(self, arguments: Sequence[str]) -> list[str]:
        """For `ray-platform preview` and its like, whose configuration names the stack file: the copy instead."""
        given = (Path(value) for option, value in pairwise(arguments) if option == "--config-file")
        named = [(plain_values(file).get("config") or {}).get(f"{PREFIX}{FILE}") for file in given if file.is_file()]
        return ["--config", f"{PREFIX}{FILE}={self._copy}"] if str(self.file) in named else []

    def up(self, *arguments: str) -> None:
        """Updates the whole environment; after a killed command by `ray-platform recover`, which ends with `up`.

        Raises:
            RehearsalError: as `run`.
        """
        if self._interrupted:
            self.prepare()
            self._recover("--", *self._options(arguments))
        else:
            self.run("up", "--yes", *arguments, whole=True)

    @property
    def _interrupted(self) -> bool:
        """Whether the last command was killed, in any stack of the environment."""
        found = {file.stem for file in self._checkpoint.file.parent.glob("*.json")}
        stacks = {self.name, *(stack for stack in found if environment_of(stack) == self.name)}
        return any(Checkpoint(self._folder, PROJECT, stack).interrupted for stack in stacks)

    def _recover(self, *arguments: str) -> None:
        console.print("The last command was killed: recovering what it was doing")
        recover = [sys.executable, "-m", "stacks", "recover", self.name, "--yes", *arguments]
        if status := self._run(*recover, writes=True):
            raise RehearsalError(f"the stack could not be recovered (exit status {status}); the error is above")

    def _run(self, *command: str | Path, writes: bool, preview: bool = False) -> int:
        environment = {**self.environment, **(STATE_AT_END if preview else {})}
        with self._checkpoint.kept() if writes else nullcontext():
            status = foreground(command, paths.ROOT, environment)
        self._rehearsal.check()
        return status

    @contextmanager
    def running(self, log: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Runs `pulumi` on all of the environment during the context; its output is written to a file.

        It is ended with the context. Its state is written at its end, not at every step, because no later command uses
        it.
        """
        self.prepare()
        environment = {**self.environment, **STATE_AT_END}
        command = self.whole(*arguments, *(() if self.split else ("--non-interactive",)))
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=paths.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # So that SIGTERM reaches the `pulumi` of each stack, too.
                start_new_session=self.split,
            )
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                process.wait()

    def output(self, *arguments: str) -> str:
        """Runs `pulumi` and returns its output.

        Raises:
            RehearsalError: it failed; with its output.
        """
        done = subprocess.run(
            [self.command, *arguments],
            env=self.environment,
            cwd=paths.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RehearsalError(f"pulumi {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    @property
    def _home(self) -> Path:
        return self._folder / "home"

    @property
    def _passphrase(self) -> Path:
        return self._folder / "passphrase"

    @property
    def _salt(self) -> Path:
        return self._folder / f"{self.name}.salt"

    @property
    def _copy(self) -> Path:
        return self._folder / f"Pulumi.{self.name}.yaml"

    def _create(self) -> str:
        """Creates the stack. Returns the salt of its passphrase."""
        # `pulumi stack init` writes the salt into the stack file beside Pulumi.yaml, which we must not change.
        environment = {key: value for key, value in self.environment.items() if not key.startswith("PULUMI_OPTION_")}
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "Pulumi.yaml").write_text(f"name: {PROJECT}\nruntime: python\n")
            done = subprocess.run(
                [self.command, "stack", "init", self.name, "--secrets-provider=passphrase", "--non-interactive"],
                env=environment,
                cwd=scratch,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RehearsalError(f"pulumi stack init {self.name} failed:\n{done.stdout}{done.stderr}")
            settings = yaml.safe_load((Path(scratch) / f"Pulumi.{self.name}.yaml").read_text())
        return str(settings["encryptionsalt"])

    def _rehearsed(self) -> dict[str, Any]:
        try:
            settings = plain_values(self.file)
        except StackFileError as error:
            raise RehearsalError(str(error)) from None
        if not isinstance(settings.get("config"), dict):
            raise RehearsalError(f"{self.file.name} has no `config:` with the stack's settings")
        self.not_waited_for = adapt(settings["config"], self._rehearsal.kind)
        return {**settings, "encryptionsalt": self._salt.read_text()}


def _write(file: Path, secret: str) -> None:
    """Atomically writes a file that only this user can read."""
    made = file.with_name(f"{file.name}.new")
    made.touch(mode=0o600)
    made.write_text(secret)
    made.replace(file)


def stack_file(stack: str) -> Path:
    """`Pulumi.<stack>.yaml` of the checkout."""
    return paths.ROOT / f"Pulumi.{stack}.yaml"


def stacks() -> list[str]:
    """Names of the checkout's stacks."""
    return stacks_in(paths.ROOT)


def missing(file: Path) -> RehearsalError:
    """The error of a stack file that does not exist."""
    known = ", ".join(sorted(stacks())) or "none"
    return RehearsalError(f"there is no stack file {file.name}; stacks of this checkout: {known}")
