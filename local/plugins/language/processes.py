"""The processes that the language host starts: programs, plugins, installers."""

import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from local.plugins.language.errors import HostError

GRACE_SECONDS = 5.0
"""Seconds until an interrupted process is killed; the engine uses the same for plugins."""

Stream = Literal["stdout", "stderr"]


class Processes:
    """Starts processes, and interrupts all of them when the engine cancels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._interrupted: set[subprocess.Popen[bytes]] = set()
        self._cancelled = False

    @contextmanager
    def running(
        self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], capture: bool = False
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A started process, which has ended when the block ends.

        Its output is the host's own, which the engine shows, or with `capture` pipes.

        Raises:
            HostError: it cannot be started.
        """
        pipe = subprocess.PIPE if capture else None
        try:
            process = subprocess.Popen(
                command, cwd=cwd, env=dict(environment), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise HostError(f"cannot run {command[0]}: {error.strerror}") from error
        with self._lock:
            self._running.add(process)
            too_late = self._cancelled
        if too_late:
            self.interrupt(process)
        try:
            yield process
            process.wait()
        finally:
            self.interrupt(process)
            process.wait()
            with self._lock:
                self._running.discard(process)
                self._interrupted.discard(process)

    def cancel(self) -> None:
        """Interrupts all running processes, and every process that is started later."""
        with self._lock:
            self._cancelled = True
            running = list(self._running)
        for process in running:
            self.interrupt(process)

    def interrupt(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a process like Ctrl-C, and kills it after GRACE_SECONDS.

        Only once: the engine cancels in several ways, and a second Ctrl-C would interrupt the cleanup.
        """
        with self._lock:
            if process.poll() is not None or process in self._interrupted:
                return
            self._interrupted.add(process)
        process.send_signal(signal.SIGINT)
        killer = threading.Timer(GRACE_SECONDS, process.kill)
        killer.daemon = True
        killer.start()


def output(process: subprocess.Popen[bytes]) -> Iterator[tuple[Stream, bytes]]:
    """The output of a process started with `capture`, as it comes, until both its streams are closed."""
    chunks: queue.SimpleQueue[tuple[Stream, bytes]] = queue.SimpleQueue()

    def read(name: Stream, stream: IO[bytes]) -> None:
        with stream:
            while chunk := stream.read1(65536):  # type: ignore[attr-defined]  # a pipe's BufferedReader has it
                chunks.put((name, chunk))
        chunks.put((name, b""))

    streams: list[tuple[Stream, IO[bytes] | None]] = [("stdout", process.stdout), ("stderr", process.stderr)]
    for name, stream in streams:
        assert stream is not None, "the process was started with capture"
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    still_open = len(streams)
    while still_open:
        name, chunk = chunks.get()
        if chunk:
            yield name, chunk
        else:
            still_open -= 1


def ending(code: int) -> str:
    """How a process failed, for a message: `code` as subprocess returns it."""
    if code < 0:
        return f"was ended by signal {signal.Signals(-code).name}"
    return f"exited with non-zero exit code: {code}"
