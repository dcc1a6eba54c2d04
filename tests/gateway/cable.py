"""The connection between the gateway and a node, which a test can break."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Cable:
    """Forwards connections to a port of loopback until a test breaks them."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._mute = False
        self._sockets: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
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
                if not (answers and self._mute):
                    target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
