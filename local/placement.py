"""Where a rehearsal's programs run and what its nodes are: simulated ones on loopback, or a real one in a box."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from kubernetes import client

from core.nodes import NodePool
from local.pki import Credentials
from local.supervision import Program

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

    def check(self, wanted: Iterable[str]) -> None:
        """See that it can run on this machine, and pods with the wanted images on it.

        Raises:
            RehearsalError: it cannot; with what is missing.
        """

    def build(self, wanted: Iterable[str]) -> None:
        """Build what it needs beside the tools of every rehearsal, and those images, as far as the cache lacks them.

        Raises:
            RehearsalError: a step failed; with what was said.
        """

    def programs(self) -> list[Program]:
        """What runs beside the control plane, in the order in which it starts."""

    def begin(self, supervisord: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        """Start supervisord where the programs are to run.

        Raises:
            RehearsalError: it did not start; with what was said.
        """

    def started(self, program: str) -> None:
        """What has to be done once a program was started, before the next one is."""

    def load(self, wanted: Iterable[str]) -> None:
        """Once it runs: let the nodes have those images."""

    def join(self, api: client.ApiClient, pools: Sequence[NodePool]) -> None:
        """Let the cluster have the nodes of the stack."""

    def ready(self, api: client.ApiClient, pools: Sequence[NodePool]) -> bool:
        """Whether the nodes are there and Ready."""

    def clean(self) -> None:
        """Remove what is left outside the run folder when no process runs any more."""
