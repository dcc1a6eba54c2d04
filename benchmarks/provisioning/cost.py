"""Cost of a Pulumi command: seconds, and CPU seconds of each program that it starts."""

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import psutil

from benchmarks.cpu import children_cpu
from testbed.harness import Project

PROGRAMS = {
    "local/plugins/language/program.py": "program",
    "pulumi-language-python-exec": "program",
    "pulumi.dynamic": "dynamic provider",
    "pulumi-resource-kubernetes": "Kubernetes provider",
}
"""Programs by a part of their command line, of the stand-in and of Pulumi's plugins."""

CHECKPOINTS = {"PULUMI_SKIP_CHECKPOINTS": "false"}
"""Writes the state at every step, which is Pulumi's default. The test harness disables that."""

PAUSE_SECONDS = 0.2
"""Interval of sampling the processes. CPU time of a process after its last sample is only in the total."""


@dataclass(frozen=True)
class Cost:
    """Cost of one command, in seconds."""

    wall: float

    cpu: float
    """Of all processes, as the operating system reports it."""

    programs: Mapping[str, float]
    """CPU by program (PROGRAMS, `engine` and `rest`)."""

    processes: Mapping[str, int]
    """Number of started processes by program."""

    stopped: bool = False
    """Whether it was stopped before it finished."""


class CommandFailedError(Exception):
    """A measured command failed; the text contains its output."""


def measured(
    project: Project,
    *arguments: str,
    enough: Callable[[float], bool] = lambda _seconds: False,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Cost:
    """Runs `pulumi`. `enough` receives the seconds so far; True stops the command.

    Raises CommandFailedError.
    """
    before, begun = children_cpu(), time.perf_counter()
    process = project.start(*arguments, environment={**CHECKPOINTS, **environment})
    stopped = False
    with _watched(process.pid) as seen:
        while True:
            try:
                output, _ = process.communicate(timeout=PAUSE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if not stopped and enough(time.perf_counter() - begun):
                    stopped = True
                    process.send_signal(signal.SIGINT)
    wall, cpu = time.perf_counter() - begun, children_cpu() - before
    if process.returncode and not stopped:
        raise CommandFailedError(f"`pulumi {' '.join(arguments)}` ended with {process.returncode}:\n{output}")
    programs = seen.seconds()
    return Cost(wall, cpu, {**programs, "rest": max(0.0, cpu - sum(programs.values()))}, seen.processes(), stopped)


@dataclass
class _Seen:
    """The processes of a command, with their CPU seconds at the last sample."""

    of_process: dict[tuple[int, float], tuple[str, float]] = field(default_factory=dict)

    def look(self, parent: int) -> None:
        try:
            command = psutil.Process(parent)
            for process in (command, *command.children(recursive=True)):
                self._look_at(process, parent)
        except psutil.Error:
            return

    def _look_at(self, process: psutil.Process, parent: int) -> None:
        try:
            with process.oneshot():
                line, times = " ".join(process.cmdline()), process.cpu_times()
                what = next((title for text, title in PROGRAMS.items() if text in line), "rest")
                title = "engine" if process.pid == parent else what
                self.of_process[(process.pid, process.create_time())] = (title, times.user + times.system)
        except psutil.Error:
            return

    def seconds(self) -> dict[str, float]:
        found: Counter[str] = Counter()
        for title, seconds in self.of_process.values():
            found[title] += seconds  # type: ignore[assignment]  # a Counter of floats
        return {title: seconds for title, seconds in found.items() if title != "rest"}

    def processes(self) -> dict[str, int]:
        return dict(Counter(title for title, _ in self.of_process.values()))


@contextmanager
def _watched(pid: int) -> Iterator[_Seen]:
    seen, ended = _Seen(), threading.Event()

    def watch() -> None:
        while not ended.wait(PAUSE_SECONDS):
            seen.look(pid)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()
