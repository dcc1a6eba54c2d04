"""The connection between the gateway and a node, which a test can break."""

import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self


class Cable:
    """Forwards connections to a port of loopback until a test breaks them."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._mute = False
        self._sockets: set[socket.socket] = set()
        self._rate: float = math.inf
        self._listening = socket.create_server(("127.0.0.1", 0))
        # What waits here has not arrived: a cable holds little.
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self.cut()

    def mute(self) -> None:
        """From now on answers are lost; what is sent still arrives."""
        self._mute = True

    @contextmanager
    def slow(self, bytes_a_second: float) -> Iterator[None]:
        """Lets no more bytes pass in each direction of each connection, during the context."""
        self._rate = bytes_a_second
        try:
            yield
        finally:
            self._rate = math.inf

    def cut(self) -> None:
        """Breaks all connections; new ones work in both directions."""
        broken, self._sockets = self._sockets, set()
        for one in broken:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._mute = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._sockets |= {near, far}
                threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                time.sleep(len(data) / self._rate)
                if not (answers and self._mute):
                    target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
