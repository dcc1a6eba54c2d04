"""Serves a page on this machine's loopback address. It reads the cluster only while a browser asks.

Other web pages must not read it: a name that somebody else lets resolve to 127.0.0.1 (DNS rebinding) is refused by the
header `Host`, and no answer may be embedded or read across origins.
"""

from __future__ import annotations

import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"

NAMES = (LOOPBACK, "localhost")
"""What browsers may call this machine."""

SECONDS = 3.0
"""Between two looks at the cluster, however many browsers ask."""

_SLOWEST = 10
"""Seconds for a request to arrive."""

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Look = Callable[[], str]
"""Makes the page."""


class Server(ThreadingHTTPServer):
    """The server of one page.

    Raises OSError if the port is in use.
    """

    daemon_threads = True

    def __init__(self, port: int, look: Look, policy: str) -> None:
        """`port`: 0 for any that is free. `policy`: the page's Content-Security-Policy."""
        self._look, self._lock = look, threading.Lock()
        self._page, self._until = "", 0.0
        self.headers = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'", **HEADERS}
        super().__init__((LOOPBACK, port), _Handler)

    def server_bind(self) -> None:
        """Without HTTPServer's question to the DNS for the name of this machine."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[0], self.server_address[1]  # type: ignore[assignment]

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser may leave before it has its answer; any other error is shown."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/"

    def known(self, host: str | None) -> bool:
        """Whether a browser calls this server by one of its own names."""
        # Browsers leave out HTTP's own port.
        own = {f"{name}:{self.server_port}" for name in NAMES} | set(NAMES if self.server_port == HTTP_PORT else ())
        return host in own

    def page(self) -> str:
        """The page, at most SECONDS old."""
        with self._lock:
            if monotonic() > self._until:
                self._page = self._look()
                self._until = monotonic() + SECONDS
            return self._page


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "ray-platform", ""
    timeout = _SLOWEST

    def do_GET(self) -> None:
        if not self.server.known(self.headers.get("Host")):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", f"This server is {self.server.url}\n")
        elif urlsplit(self.path).path != "/":
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", f"There is only {self.server.url}\n")
        else:
            self._answer(HTTPStatus.OK, "text/html", self.server.page())

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""
