"""Where a rehearsal's programs run and what its nodes are: simulated ones on loopback, or a real one in a box."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from kubernetes import client

from local.pki import Credentials
from local.supervision import Program
from stacks.settings import NodePool, StackSettings

Kind = Literal["simulated", "real"]
"""`simulated`: pods are Ready without a process, and no rights are needed. `real`: pods run; needs Linux and root."""


class Placement(Protocol):
    """What differs between the kinds of nodes. Each belongs to one run folder."""

    @property
    def node_program(self) -> str:
        """The program that makes the nodes Ready."""

    @property
    def address(self) -> str:
        """Where the API server listens, and where it is reached from this machine."""

    @property
    def api_port(self) -> int | None:
        """The API server's port; None for any that is free."""

    @property
    def credentials(self) -> Credentials:
        """The certificates that are needed."""

    @property
    def apiserver_flags(self) -> Sequence[str]:
        """What the API server is told beside its address."""

    def check(self, settings: StackSettings) -> None:
        """See that it can run on this machine, and that stack on it.

        Raises:
            RehearsalError: it cannot; with what is missing.
        """

    def build(self) -> None:
        """Build what it needs beside the tools of every rehearsal and the cache does not hold yet."""

    def programs(self) -> list[Program]:
        """What runs beside the control plane, in the order in which it starts."""

    def begin(self, supervisord: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        """Start supervisord where the programs are to run.

        Raises:
            RehearsalError: it did not start; with what was said.
        """

    def started(self, program: str) -> None:
        """What has to be done once a program was started, before the next one is."""

    def join(self, api: client.ApiClient, pools: Sequence[NodePool]) -> None:
        """Let the cluster have the nodes of the stack."""

    def ready(self, api: client.ApiClient, pools: Sequence[NodePool]) -> bool:
        """Whether the nodes are there and Ready."""

    def clean(self) -> None:
        """Remove what is left outside the run folder when no process runs any more."""
