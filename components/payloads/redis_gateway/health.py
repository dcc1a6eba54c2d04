"""`/livez`, `/readyz` and `/metrics` over HTTP, in a separate thread: it answers even if the event loop hangs."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from .settings import Address

STUCK_SECONDS = 15
"""How long the event loop may be silent before `/livez` fails."""

POLL_SECONDS = 0.1
"""How long the thread takes to notice a shutdown."""


@dataclass
class Health:
    """The state that the probes report."""

    reason: str | None = "starting"
    """Why the gateway is not ready; None: it is ready.

    A failover does not change it: the gateway must hold its clients during a failover, and a Service removes a pod that
    is not ready from its endpoints.
    """

    seen: float = 0
    """When the event loop ran last, by the monotonic clock."""

    def ready(self) -> tuple[HTTPStatus, str]:
        """The answer of `/readyz`."""
        return (HTTPStatus.OK, "ready") if self.reason is None else (HTTPStatus.SERVICE_UNAVAILABLE, self.reason)

    def live(self) -> tuple[HTTPStatus, str]:
        """The answer of `/livez`."""
        if (silent := time.monotonic() - self.seen) < STUCK_SECONDS:
            return HTTPStatus.OK, "live"
        return HTTPStatus.SERVICE_UNAVAILABLE, f"the event loop has not run for {silent:.0f} s"


def serve(address: Address, health: Health, registry: CollectorRegistry) -> ThreadingHTTPServer:
    """Starts the server; its `shutdown` ends it. Raises OSError if it cannot listen."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/livez":
                self._send(*health.live())
            elif path == "/readyz":
                self._send(*health.ready())
            elif path == "/metrics":
                self._send(HTTPStatus.OK, generate_latest(registry).decode(), CONTENT_TYPE_LATEST)
            else:
                self._send(HTTPStatus.NOT_FOUND, "there are /livez, /readyz and /metrics")

        def _send(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Does not log probes, which come every few seconds."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        daemon_threads = True

    Handler.timeout = 10
    server = Server(address, Handler)
    threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="http", daemon=True).start()
    return server
