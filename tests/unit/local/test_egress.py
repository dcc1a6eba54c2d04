"""How the API server of a rehearsal reaches the program behind a Service."""

import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.host_pods import egress
from tests.gateway.waiting import eventually


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"heard " + self.rfile.readline())


@pytest.fixture
def program() -> Iterator[int]:
    """The port of a program that answers a line."""
    with socketserver.TCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def proxy(program: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The proxy's socket. One Service is known: 10.96.0.7:443."""
    # The path of a Unix socket may have 107 characters.
    monkeypatch.chdir(tmp_path)
    listen = Path("egress")
    egress.serve(listen, lambda address, port: program if (address, port) == ("10.96.0.7", 443) else None)
    return listen


def asked(proxy: Path, address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    # The socket's file exists a moment before the proxy listens.
    eventually("the proxy listens", lambda: connection.connect_ex(os.fspath(proxy)) == 0)
    connection.sendall(f"CONNECT {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def test_a_service_leads_to_the_program_behind_it(proxy: Path) -> None:
    with asked(proxy, "10.96.0.7:443") as connection:
        assert connection.recv(1024) == b"HTTP/1.1 200 OK\r\n\r\n"
        connection.sendall(b"hello\n")
        assert connection.recv(1024) == b"heard hello\n"


def test_a_service_without_a_program_is_refused_at_once(proxy: Path) -> None:
    with asked(proxy, "10.96.0.8:443") as connection:
        assert connection.recv(1024).startswith(b"HTTP/1.1 503 ")
        assert connection.recv(1024) == b""
