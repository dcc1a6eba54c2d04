"""The server: `python server.py SOCKET`. It prints `ready`, and ends when its standard input is closed.

It imports packages and the checkout's own code, and has one thread, so that its copy is as good as a new process.
"""

import array
import atexit
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import types
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO

PACKAGES = (
    "google.protobuf.json_format",
    "jsonschema_rs",
    "kubernetes.client",
    "pulumi",
    "pulumi.dynamic",
    "pulumi_kubernetes",
    "pydantic",
    "yaml",
)
"""What most processes import, with all that these import."""

ROOT = Path(__file__).parents[2]

OWN = ("stacks.program.build", "stacks.program.config", "components.dynamic", "policies.pack")
"""What programs and policy packs of the checkout import."""

READ_THE_ENVIRONMENT = ("kubernetes.config",)
"""What of it reads variables while it is imported. Each copy imports it again, with its own variables."""


class Request(NamedTuple):
    """A command, as its client has sent it."""

    options: list[str]
    command: list[str]
    folder: str
    environment: dict[str, str]
    path: list[str]
    """`sys.path` without the folder of what runs."""
    descriptors: list[int]
    """Standard input, output and error."""


class Server:
    """Forks for each request, and tells a client how its copy has ended. A client that ends, ends its copy."""

    def __init__(self, address: str) -> None:
        self._events = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._events.register(0, selectors.EVENT_READ)
        self._events.register(self._listener, selectors.EVENT_READ)
        self._clients: dict[socket.socket, int | None] = {}
        """Each with the process of its copy; None once that has ended. The socket stays open until the client has
        ended, as the client may still get a signal and send it."""
        self._copies: dict[int, tuple[int, socket.socket]] = {}
        """By a descriptor that is readable when the process has ended."""

    def serve(self) -> Request:
        """Returns in a copy alone, with its request."""
        while True:
            for key, _ in self._events.select():
                if key.fd == 0:
                    self._end()
                elif key.fileobj is self._listener:
                    if request := self._fork():
                        return request
                elif isinstance(key.fileobj, socket.socket):
                    self._signal(key.fileobj)
                else:
                    self._ended(key.fd)

    def _end(self) -> None:
        for pid, _ in self._copies.values():
            os.killpg(pid, signal.SIGKILL)
        sys.exit()

    def _fork(self) -> Request | None:
        client, _ = self._listener.accept()
        request = received(client)
        if request is None:
            client.close()
            return None
        pid = os.fork()
        # Both do it, so that neither goes on before it is done. The copy may have become another program or ended.
        with suppress(OSError):
            os.setpgid(pid, pid)
        if pid == 0:
            return request
        for descriptor in request.descriptors:
            os.close(descriptor)
        ended = os.pidfd_open(pid)
        self._clients[client] = pid
        self._copies[ended] = pid, client
        self._events.register(client, selectors.EVENT_READ)
        self._events.register(ended, selectors.EVENT_READ)
        return None

    def _signal(self, client: socket.socket) -> None:
        """Sends the copy what its client got; without a client, kills it and the processes that it has started, which
        whoever killed the client has not found below it."""
        pid = self._clients[client]
        number = b""
        with suppress(ConnectionError):
            number = client.recv(1)
        if number and pid:
            os.kill(pid, number[0])
        elif not number:
            if pid:
                os.killpg(pid, signal.SIGKILL)
            self._events.unregister(client)
            del self._clients[client]
            client.close()

    def _ended(self, descriptor: int) -> None:
        pid, client = self._copies.pop(descriptor)
        _, status = os.waitpid(pid, 0)
        self._events.unregister(descriptor)
        os.close(descriptor)
        if client in self._clients:
            self._clients[client] = None
            with suppress(ConnectionError):
                client.send(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def received(client: socket.socket) -> Request | None:
    """The request of a client; None if it was killed before it had sent it all."""
    descriptors = array.array("i")
    content, length = b"", 1
    with suppress(ConnectionError):
        sent, ancillary, _, _ = client.recvmsg(4, socket.CMSG_SPACE(3 * 4))
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        length = int.from_bytes(sent, "big") or 1
        while len(content) < length and (part := client.recv(1 << 16)):
            content += part
    if len(content) == length:
        return Request(**json.loads(content), descriptors=list(descriptors))
    for descriptor in descriptors:
        os.close(descriptor)
    return None


def forget(packages: Iterable[str]) -> None:
    """Undoes the import of packages, so that the next import runs their code."""
    inside = tuple(f"{package}." for package in packages)
    for name in [module for module in sys.modules if f"{module}.".startswith(inside)]:
        del sys.modules[name]


def finds_the_checkout(request: Request) -> bool:
    """Whether a command would import the checkout's own code, and not that of a copy or a package of it."""
    if Path(request.folder) == ROOT / "policies":  # the pack puts the folder above it on the path
        return True
    having = (Path(folder) for folder in (request.folder, *request.path) if Path(folder, "components").is_dir())
    return next(having, None) == ROOT


def unbuffered(stream: TextIO) -> TextIO:
    """The stream as Python makes it with `-u`: neither its text nor its bytes wait."""
    raw = io.FileIO(stream.fileno(), "w", closefd=False)
    # TextIOWrapper takes the raw stream as Python itself does (Python/pylifecycle.c, create_stdio).
    return io.TextIOWrapper(raw, encoding=stream.encoding, errors=stream.errors, write_through=True)


def run(request: Request, own: Iterable[str]) -> None:
    """Runs a command as Python itself does. `own`: the checkout's packages that are imported already."""
    for number, descriptor in enumerate(request.descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 1 + max(int(each.name) for each in Path("/proc/self/fd").iterdir()))
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    for name in READ_THE_ENVIRONMENT:
        importlib.import_module(name)
    if not finds_the_checkout(request):
        forget(own)
    if "-u" in request.options or request.environment.get("PYTHONUNBUFFERED"):
        sys.stdout, sys.stderr = (unbuffered(stream) for stream in (sys.stdout, sys.stderr))
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    first, *arguments = request.command
    sys.path[:] = request.path
    if first == "-m":
        if "-P" not in request.options:
            sys.path.insert(0, request.folder)
        sys.argv[:] = ["-m", *arguments[1:]]
        runpy._run_module_as_main(arguments[0])  # type: ignore[attr-defined] # what Python itself calls
        return
    if "-P" not in request.options:
        sys.path.insert(0, str(Path(first).parent))
    sys.argv[:] = request.command
    main.__file__ = first
    code = compile(Path(first).read_bytes(), first, "exec")
    exec(code, main.__dict__)  # noqa: S102 - the file is what Python was started with


def end(code: int) -> NoReturn:
    """Ends a copy like Python, but without freeing each object, which takes 30 milliseconds of CPU for the packages
    alone."""
    threading._shutdown()  # type: ignore[attr-defined] # what Python itself calls
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    for name in PACKAGES:
        importlib.import_module(name)
    before = set(sys.modules)
    for name in OWN:
        importlib.import_module(name)
    own = {name.partition(".")[0] for name in sys.modules.keys() - before if (ROOT / name.partition(".")[0]).is_dir()}
    forget(READ_THE_ENVIRONMENT)
    assert threading.active_count() == 1 == len(list(Path("/proc/self/task").iterdir())), "a copy would lack threads"
    server = Server(sys.argv[1])
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    try:
        run(server.serve(), own)
    except SystemExit as ended:
        if ended.code and not isinstance(ended.code, int):
            raise
        end(ended.code or 0)
    end(0)
