"""A Ray cluster on Cloudera ML as an object of Python: `CmlCluster(Path("Pulumi.dev.yaml"), "training")`.

It runs the loop of `up` (components/cml/reconcile.py) with what the state of the stack has. Stack file and state stay
as they are, so the next `up` makes what they set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.waiting import report
from core.stack_file import PREFIX, stack_name
from core.suggestions import names_hint
from stacks.commands.status.cml import CmlStatus, inputs_of, look
from stacks.commands.status.targets import NoSuchTargetError
from stacks.load import load
from stacks.objects.cml import API_KEY

if TYPE_CHECKING:
    from components.cml.manifests import Inputs
    from components.cml.reconcile import Applications
    from stacks.commands.recover.cli import Cli
    from stacks.settings import StackSettings

_CLAIM, _NODES = "CmlClaim", "CmlNodes"
"""How the types of its resources end (components/dynamic/cml.py)."""

_NONE = {"plaintext": "[]"}
"""An output that the state lacks."""


class NotStartedError(Exception):
    """The cluster is not started or stopped like this; the message has what to do."""


@dataclass(frozen=True)
class _Made:
    """What the last `up` has made."""

    inputs: Inputs
    token: str
    former: Sequence[str]
    """The tokens before it."""


class CmlCluster:
    """A Ray cluster on Cloudera ML, of a stack file.

    The key of the API is in CML_API_KEY, or else in the stack's configuration. Starting and stopping read the state of
    the stack, with the `pulumi` on the PATH, because it has Ray's token.
    """

    def __init__(
        self, stack_file: Path, name: str, pulumi: Cli | None = None, loaded: StackSettings | None = None
    ) -> None:
        """`name`: the cluster's. `pulumi`: for the stack; by default in the current folder, which has Pulumi.yaml.
        `loaded`: the settings of the stack file, if they are loaded already.

        Raises StackFileError if the stack file is not valid, and NoSuchTargetError if it has no such cluster.
        """
        stack, self.stack = loaded or load(stack_file), stack_name(stack_file)
        inputs = inputs_of(stack.cml, self.stack, name)
        if inputs is None:
            known = [each.name for each in stack.cml.clusters] if stack.cml else []
            hint = names_hint(name, known) if known else "its stack file has none in ray-platform:cml"
            raise NoSuchTargetError(f"{self.stack} has no Ray cluster {name!r} on Cloudera ML: {hint}")
        self._inputs = inputs
        self._file, self._encrypted, self._cli = stack_file, stack.cml_api_key is not None, pulumi

    def get_status(self) -> CmlStatus:
        """Its status now, compared with the stack file; UNKNOWN with the reason if Cloudera ML does not show it.

        Raises PulumiError if the key is in the configuration, and cannot be read there.
        """
        return look(self._inputs, self._configured())

    def start_cluster(self, show: Callable[[str], None] = report) -> CmlStatus:
        """Starts it as the last `up` made it, and replaces what has failed. Waits for `readyTimeout`.

        `show`: gets a line whenever the progress changes. Returns its status. Raises NotStartedError if the stack file
        suspends it or differs from the last `up`, CmlError if Cloudera ML refuses, or it is not ready in time, and
        PulumiError if the state cannot be read.
        """
        made = self._made()
        if self._inputs["suspend"]:
            raise NotStartedError(f"{self._name} has suspend: true: set it to false, and run `pulumi up`")
        if differ := sorted(key for key, value in self._inputs.items() if made.inputs.get(key) != value):
            raise NotStartedError(
                f"{self._name} differs from the last `up` ({', '.join(differ)}): run `pulumi up`, which also starts it"
            )
        with self._applications(made, suspend=False) as applications:
            applications.make(show)
        return self.get_status()

    def stop_cluster(self, show: Callable[[str], None] = report) -> None:
        """Deletes all its applications, busy workers once they have ended their tasks. Waits for `drainTimeout`.

        `show`: as of `start_cluster`. Raises CmlError if Cloudera ML refuses, or if tasks still run then, and
        PulumiError if the state cannot be read.
        """
        with self._applications(self._made(), suspend=True) as applications:
            applications.make(show)

    def metrics_key(self) -> str:
        """The key with which Prometheus reads its metrics. Raises NotStartedError before the first `up`, and
        PulumiError if the state cannot be read."""
        from components.payloads.cml_application import metrics_key

        return metrics_key(self._made().token)

    @property
    def _name(self) -> str:
        return f"Ray cluster {self._inputs['cluster']} of {self._file}"

    @contextmanager
    def _applications(self, made: _Made, *, suspend: bool) -> Iterator[Applications]:
        from components.cml.client import Client, api_key
        from components.cml.reconcile import Applications

        inputs = {**made.inputs, "suspend": suspend}
        key = api_key(self._configured())
        with closing(Client(inputs["host"], key, inputs["caFile"], secrets=[made.token, *made.former])) as client:
            yield Applications(client, inputs, made.token, former=made.former)

    def _made(self) -> _Made:
        exported = json.loads(self._pulumi().output("stack", "export", "--show-secrets"))
        found: dict[str, dict[str, Any]] = {}
        for each in exported["deployment"].get("resources") or ():
            if (each.get("outputs") or {}).get("prefix") == self._inputs["prefix"] and not each.get("delete"):
                found[str(each["type"]).rpartition(":")[2]] = each["outputs"]
        if _CLAIM not in found or _NODES not in found:
            raise NotStartedError(f"{self._name} is not in the state of the stack: run `pulumi up`, which creates it")
        # Secrets of an exported state are JSON in `plaintext` (pulumi, sdk/go/common/apitype: SecretV1).
        token, former = (json.loads(found[_CLAIM][key]["plaintext"]) for key in ("token", "former"))
        return _Made({key: found[_NODES][key] for key in self._inputs if key in found[_NODES]}, token, former)

    def _configured(self) -> str | None:
        """The key in the stack's configuration, decrypted; None if it has none, or the environment has one. Raises
        PulumiError."""
        from components.cml.client import KEY_VARIABLE

        if os.environ.get(KEY_VARIABLE) or not self._encrypted:
            return None
        command = ("config", "get", f"{PREFIX}{API_KEY}", "--config-file", str(self._file.resolve()))
        return self._pulumi().output(*command).strip()

    def _pulumi(self) -> Cli:
        from stacks.commands.recover.cli import Cli

        return self._cli or Cli(self.stack)


def all_clusters(stack_file: Path) -> list[CmlCluster]:
    """A stack file's clusters on Cloudera ML. Raises StackFileError."""
    stack = load(stack_file)
    return [CmlCluster(stack_file, each.name, loaded=stack) for each in stack.cml.clusters] if stack.cml else []
