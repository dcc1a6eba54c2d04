"""One rehearsal cluster: starts, checks and stops it."""

import fcntl
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from core.files import replace_text
from core.nodes import NodePool
from local import control_plane, paths, pki, tools
from local.errors import RehearsalError
from local.nodes import SimulatedNodes
from local.placement import Kind, Placement
from local.progress import Report
from local.real_node import RealNode
from local.supervision import State, Supervisor

if TYPE_CHECKING:
    from local.monitoring.prometheus import Prometheus
    from stacks.settings import StackSettings

PLACEMENTS: dict[Kind, Callable[[Path], Placement]] = {"simulated": SimulatedNodes, "real": RealNode}

READY_SECONDS = 90.0
"""Seconds that a part may take to answer. Each takes a second or two, or more beside a compiler."""

NOTICED_SECONDS = 1.5
"""Seconds in which supervisord notices that a part has ended; it looks every second."""


class Rehearsal:
    """The cluster whose credentials, data and logs are in one run folder.

    A folder belongs to one rehearsal and stores its kind of nodes; rehearsals with different folders can run at the
    same time.
    """

    def __init__(self, run: Path, kind: Kind | None = None) -> None:
        self.run = run.resolve()
        self.supervisor = Supervisor(self.run)
        text = self._kind.read_text() if self._kind.is_file() else ""
        remembered = next((each for each in PLACEMENTS if each == text), None)
        self.kind: Kind = kind or remembered or "simulated"
        if remembered not in (None, self.kind):
            raise RehearsalError(
                f"the rehearsal in {self.run} has {remembered} nodes, not {self.kind} ones: leave NODES out, or "
                "first remove the rehearsal with `make down CLEAN=1`"
            )
        self.placement = PLACEMENTS[self.kind](self.run)

    @property
    def kubeconfig(self) -> Path:
        """The cluster admin's kubeconfig."""
        return self.run / "kubeconfigs" / "admin"

    def client(self) -> client.ApiClient:
        """A client of its API server with the cluster admin's rights."""
        api: client.ApiClient = config.new_client_from_config(str(self.kubeconfig))
        return api

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Prevents other commands of the same checkout from changing the rehearsal meanwhile.

        Raises:
            RehearsalError: another command is running.
        """
        self.run.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self.run / "lock"
        with lock.open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RehearsalError(
                    f"another command is changing the rehearsal in {self.run}: wait for it to end, or interrupt it"
                ) from None
            yield

    def start(self, pools: Sequence[NodePool], report: Report = lambda _done, _detail: None) -> None:
        """Starts all parts that do not run yet and makes the nodes those of the stack.

        Raises:
            RehearsalError: a part ended or did not answer; with its name and the tail of its log.
        """
        if not self.supervisor.alive:
            self._prepare()
        programs = [state.name for state in self.supervisor.states()]
        for position, name in enumerate(programs):
            report(position / (len(programs) + 1), name)
            self.supervisor.launch(name)
            if name == "kube-apiserver":
                self._wait(name, self._answers)
            self.placement.started(name)
        report(len(programs) / (len(programs) + 1), "nodes")
        api = self.client()
        self.placement.join(api, pools)
        self._wait(self.placement.node_program, lambda: self.placement.ready(api, pools))
        self.check()

    @staticmethod
    def check_monitoring() -> None:
        """Checks that `monitor` can start a Prometheus.

        Raises:
            RehearsalError: it is not installed; with how to install it.
        """
        from local.monitoring.prometheus import check

        check()

    def monitor(self, stack: "StackSettings") -> None:
        """Starts a Prometheus with the targets and rules of the stack; one that runs gets them.

        Raises:
            RehearsalError: Prometheus is not installed, has ended or did not answer.
        """
        from local.monitoring.prometheus import NAME

        runs = any(state.name == NAME and state.running for state in self.states())
        self.prometheus.configure(stack)
        self.supervisor.add(programs := self.prometheus.programs())
        for program in programs:
            self.supervisor.launch(program.name)
        if runs:
            self.supervisor.hang_up(NAME)
        self._wait(NAME, lambda: self.prometheus.ready)

    @property
    def prometheus(self) -> "Prometheus":
        """Its Prometheus, which may not run."""
        from local.monitoring.prometheus import Prometheus

        return Prometheus(self.run, self.placement.address, simulated=self.kind == "simulated")

    def check(self) -> None:
        """Checks that every part still runs.

        Raises:
            RehearsalError: one does not; with its name and the tail of its log.
        """
        for state in self.supervisor.states():
            if state.crashed:
                raise RehearsalError(
                    f"{state.name} has ended ({state.description}). The last lines of {state.log}:\n\n{state.tail()}"
                )

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Checks that every part still runs if the API server does not answer meanwhile.

        Raises:
            RehearsalError: as `check`.
        """
        try:
            yield
        except (client.ApiException, HTTPError):
            time.sleep(NOTICED_SECONDS)
            self.check()
            raise

    def stop(self, clean: bool = False) -> None:
        """Ends every process of the rehearsal; with `clean`, kills them and removes its run folder as well."""
        self.supervisor.stop(at_once=clean)
        self.placement.clean()
        if clean:
            shutil.rmtree(self.run, ignore_errors=True)

    def states(self) -> list[State]:
        """Its processes; empty when it is down."""
        return self.supervisor.states()

    def _prepare(self) -> None:
        # A killed supervisor leaves its programs behind; they hold ports and etcd's data.
        self.stop()
        self.run.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.run / ".gitignore").write_text("*\n")
        replace_text(self._kind, self.kind)
        place = self.placement
        pki.issue(self.run / "pki", place.credentials)
        ports = control_plane.choose_ports(self.run / "ports.json", place.api_port)
        control_plane.write_kubeconfigs(self.run, ports, place.credentials)
        programs = control_plane.programs(
            self.run, ports, place.address, place.apiserver_flags, place.control_plane_priority
        )
        self.supervisor.start([*programs, *place.programs()], place.begin)

    @property
    def _kind(self) -> Path:
        return self.run / "nodes"

    def _answers(self) -> bool:
        try:
            with self.client() as api:
                answer = api.call_api("GET", f"{api.configuration.host}/readyz", _request_timeout=2)
                return bool(answer.status == HTTPStatus.OK)
        except (client.ApiException, HTTPError):
            return False

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                state = self.supervisor.state(name)
                raise RehearsalError(
                    f"{name} did not become ready within {READY_SECONDS:.0f} s. "
                    f"The last lines of {state.log}:\n\n{state.tail()}"
                )
            time.sleep(0.1)


def write_commands(rehearsal: Rehearsal, stack: str) -> Path:
    """A folder for the PATH: `pulumi` and `kubectl` configured for the rehearsal of this stack."""
    folder = rehearsal.run / "bin"
    folder.mkdir(exist_ok=True)
    kubectl = folder / "kubectl"
    kubectl.unlink(missing_ok=True)
    kubectl.symlink_to(tools.KUBERNETES.program("kubectl"))
    pulumi = folder / "pulumi"
    python, root = shlex.quote(sys.executable), shlex.quote(str(paths.ROOT))
    pulumi.write_text(f'#!/bin/sh\ncd {root} && exec {python} -m local pulumi --stack={shlex.quote(stack)} -- "$@"\n')
    pulumi.chmod(0o755)
    return folder
