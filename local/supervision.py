"""Processes of a rehearsal under supervisord: started, watched, stopped together, each with its own log.

Nothing is restarted automatically: `make up` and `make status` report a program that has ended.
"""

import configparser
import os
import shlex
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil
from supervisor.xmlrpc import Faults, SupervisorTransport

from local import paths
from local.errors import RehearsalError

MARK = "RAY_PLATFORM_REHEARSAL"
"""Environment variable of every process of a rehearsal: its run folder. `stop` uses it to find strays."""

URGENT = ("nice", "-n", "-15")
"""Begins the command line of a program that has a CPU of its own on a cluster. All pods of a real node weigh as much as
ten processes (local/real_node/box.py), and this one as much as thirty; where the kernel weighs whole sessions,
local/real_node/inside.py raises the session as well."""

START_SECONDS = 60.0
"""Seconds that supervisord may take to start: beside the pods of another real node, which have priority, it took 15."""


@dataclass(frozen=True)
class Program:
    """A command line to supervise. `environment` is added to the supervisor's; `stop_signal` ends it."""

    name: str
    command: Sequence[str | Path]
    environment: Mapping[str, str]
    stop_signal: Literal["TERM", "KILL"] = "TERM"


def of_module(name: str, module: str, *arguments: str | Path) -> Program:
    """The program that runs a module of this checkout."""
    path = paths.first_on_python_path(paths.ROOT, os.environ)
    return Program(name, [sys.executable, "-m", module, *arguments], {"PYTHONPATH": path})


@dataclass(frozen=True)
class State:
    """The state of a supervised program. `running` false with a `pid` of 0 means that it ended or never started."""

    name: str
    running: bool
    state: str
    pid: int
    description: str
    log: Path

    @property
    def crashed(self) -> bool:
        return self.state in ("EXITED", "FATAL", "BACKOFF", "UNKNOWN")

    def tail(self, lines: int = 15) -> str:
        """The last lines of its log."""
        if not self.log.is_file():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


Begin = Callable[[Sequence[str | Path], Mapping[str, str]], None]
"""Starts supervisord: its command line and its whole environment."""


def daemonize(supervisord: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> None:
    """Starts supervisord as a daemon of this machine.

    Raises:
        RehearsalError: it did not start; with its output.
    """
    done = subprocess.run(
        [*supervisord],
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RehearsalError(f"supervisord did not start:\n{done.stdout}{done.stderr}")


class Supervisor:
    """supervisord for one run folder."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.logs = run / "logs"
        self.socket = paths.socket(run, "supervisor")

    @property
    def alive(self) -> bool:
        """Whether supervisord answers."""
        try:
            return bool(self._rpc.getState())
        except (OSError, xmlrpc.client.Fault):
            return False

    def start(self, programs: Sequence[Program], begin: Begin) -> None:
        """Starts supervisord with these programs configured, but not started. `begin` decides where it runs.

        Raises:
            RehearsalError: supervisord did not start.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        self.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.socket.unlink(missing_ok=True)
        self._write_config(programs)
        begin([sys.executable, "-m", "supervisor.supervisord", "-c", self._config], {**os.environ, MARK: str(self.run)})
        deadline = time.monotonic() + START_SECONDS
        while not self.alive:
            if time.monotonic() > deadline or not any(self.strays()):
                raise RehearsalError(f"supervisord did not start; its log is {self.logs / 'supervisord.log'}")
            time.sleep(0.05)

    def add(self, programs: Sequence[Program]) -> None:
        """Configures further programs of a running supervisord; known ones stay as they are."""
        config = configparser.RawConfigParser()
        config.read(self._config)
        first = sum(section.startswith("program:") for section in config.sections())
        new = [program for program in programs if not config.has_section(f"program:{program.name}")]
        for position, program in enumerate(new, start=first):
            config[f"program:{program.name}"] = self._section(program, position)
        with self._config.open("w") as file:
            config.write(file)
        self._rpc.reloadConfig()
        for program in new:
            self._rpc.addProcessGroup(program.name)

    def hang_up(self, name: str) -> None:
        """Sends SIGHUP to a program, which then reads its configuration again."""
        self._rpc.signalProcess(name, "HUP")

    def launch(self, name: str) -> None:
        """Starts one program if it does not run. The caller has to check whether it is ready."""
        if self.state(name).running:
            return
        try:
            self._rpc.startProcess(name, False)
        except xmlrpc.client.Fault as error:
            # It has ended already. Whoever waits for it finds its state.
            if error.faultCode != Faults.SPAWN_ERROR:
                raise

    def state(self, name: str) -> State:
        return self._state(self._rpc.getProcessInfo(name))

    def states(self) -> list[State]:
        """Every program in start order; empty if nothing is supervised."""
        if not self.alive:
            return []
        config = configparser.RawConfigParser()
        config.read(self._config)
        names = [section.removeprefix("program:") for section in config.sections() if section.startswith("program:")]
        return [self.state(name) for name in names]

    def stop(self, at_once: bool = False) -> None:
        """Ends all processes with this rehearsal's mark: in order if supervisord runs, by signal otherwise. `at_once`
        kills them, for a rehearsal whose data are removed."""
        if self.alive and not at_once:
            self._rpc.shutdown()
            psutil.wait_procs([process for process in self.strays() if self._is_supervisord(process)], timeout=60)
        for _second in range(10):
            # Repeated, because a process may have just started another, and because the first process of a box that is
            # just starting does not get the signal (kill(2)).
            if not (left := list(self.strays())):
                break
            for process in left:
                _signal(process, "kill" if at_once else "terminate")
            psutil.wait_procs(left, timeout=1)
        left = list(self.strays())
        for process in left:
            _signal(process, "kill")
        psutil.wait_procs(left, timeout=5)
        self.socket.unlink(missing_ok=True)

    def strays(self) -> Iterator[psutil.Process]:
        """Processes of this rehearsal, whoever started them, except this process and its parents."""
        own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        for process in psutil.process_iter():
            try:
                if process.pid not in own and process.environ().get(MARK) == str(self.run):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue

    @property
    def _config(self) -> Path:
        return self.run / "supervisord.conf"

    @property
    def _rpc(self) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{self.socket}")
        return xmlrpc.client.ServerProxy("http://localhost", transport=transport).supervisor

    def _is_supervisord(self, process: psutil.Process) -> bool:
        try:
            return str(self._config) in process.cmdline()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return False

    def _state(self, info: Mapping[str, Any]) -> State:
        return State(
            name=info["name"],
            running=info["statename"] in ("STARTING", "RUNNING", "STOPPING"),
            state=info["statename"],
            pid=info["pid"],
            description=_description(info),
            log=Path(info["logfile"]),
        )

    def _write_config(self, programs: Sequence[Program]) -> None:
        config = configparser.RawConfigParser()
        config["supervisord"] = {
            "logfile": _literal(self.logs / "supervisord.log"),
            "pidfile": _literal(self.run / "supervisord.pid"),
            "childlogdir": _literal(self.logs),
            "silent": "true",
        }
        config["unix_http_server"] = {"file": _literal(self.socket), "chmod": "0600"}
        config["rpcinterface:supervisor"] = {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        }
        for position, program in enumerate(programs):
            config[f"program:{program.name}"] = self._section(program, position)
        with self._config.open("w") as file:
            config.write(file)

    def _section(self, program: Program, position: int) -> dict[str, str]:
        return {
            "command": _literal(shlex.join(str(part) for part in program.command)),
            "environment": _literal(",".join(f'{key}="{value}"' for key, value in program.environment.items())),
            "directory": _literal(self.run),
            "autostart": "false",
            "autorestart": "false",
            "startretries": "0",
            "startsecs": "0",
            "stopsignal": program.stop_signal,
            "stopwaitsecs": "20",
            "stopasgroup": "false",
            "killasgroup": "true",
            # supervisord starts by rising priority and stops by falling: the program that most others need ends
            # last.
            "priority": str(100 + position),
            "redirect_stderr": "true",
            "stdout_logfile": _literal(self.logs / f"{program.name}.log"),
            "stdout_logfile_maxbytes": "20MB",
            "stdout_logfile_backups": "1",
        }


def _description(info: Mapping[str, Any]) -> str:
    if info["statename"] != "EXITED":
        return str(info["description"])
    # supervisord reports -1 if waitpid reports that a signal ended it.
    how = "by a signal" if info["exitstatus"] < 0 else f"with exit status {info['exitstatus']}"
    return f"{how}, {info['description']}"


def _literal(text: str | Path) -> str:
    # supervisord expands %(name)s in every value.
    return str(text).replace("%", "%%")


def _signal(process: psutil.Process, how: str) -> None:
    try:
        getattr(process, how)()
    except psutil.NoSuchProcess:
        return
