"""Where a rehearsal's programs run, and its nodes: simulated ones on loopback, or a real one in a box."""

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
    """The difference between the kinds of nodes. An instance belongs to one run folder."""

    @property
    def node_program(self) -> str:
        """The program that makes the nodes Ready."""

    @property
    def address(self) -> str:
        """The address where the API server listens, and is reached from this machine."""

    @property
    def api_port(self) -> int | None:
        """The API server's port; None for any free one."""

    @property
    def credentials(self) -> Credentials:
        """The certificates to issue."""

    @property
    def apiserver_flags(self) -> Sequence[str]:
        """Flags of the API server beside its address."""

    @property
    def control_plane_priority(self) -> Sequence[str]:
        """The beginning of the command lines of the control plane's programs."""

    def check(self, references: Iterable[str]) -> None:
        """Checks that this machine can run it, and pods with images of these references.

        Raises:
            RehearsalError: it cannot; with what is missing.
        """

    def build(self, references: Iterable[str]) -> None:
        """Builds its own requirements, and the images of these references, as far as the cache lacks them.

        Raises:
            RehearsalError: a step failed; with its output.
        """

    def programs(self) -> list[Program]:
        """The programs beside the control plane, in their start order."""

    def begin(self, supervisord: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        """Starts supervisord where the programs run.

        Raises:
            RehearsalError: it did not start; with its output.
        """

    def started(self, program: str) -> None:
        """Called after each program was started, before the next one is."""

    def load(self, references: Iterable[str]) -> None:
        """Loads the images of these references into the running nodes."""

    def join(self, api: client.ApiClient, pools: Sequence[NodePool]) -> None:
        """Adds the nodes of the stack to the cluster."""

    def ready(self, api: client.ApiClient, pools: Sequence[NodePool]) -> bool:
        """Whether the nodes exist and are Ready."""

    def clean(self) -> None:
        """Removes what it has created outside the run folder after all processes have ended."""
