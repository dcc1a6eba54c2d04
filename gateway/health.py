"""`/livez`, `/readyz` and `/metrics` over HTTP, in a thread of its own: it answers even when the gateway does not."""

import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from .settings import Address

STUCK_SECONDS = 15
"""How long the event loop may not come round before the gateway counts as dead."""

POLL_SECONDS = 0.1
"""How long the thread takes to notice that it should end."""


@dataclass
class Health:
    """What probes are told."""

    reason: str | None = "starting"
    """Why clients should not come; None: they should.

    It does not speak of failovers: to hold its clients then is what the gateway is for, and a pod that is not ready
    loses its place behind its service.
    """

    seen: float = 0
    """When the event loop came round last, by the monotonic clock."""

    def ready(self) -> tuple[HTTPStatus, str]:
        """The answer of `/readyz`."""
        return (HTTPStatus.OK, "ready") if self.reason is None else (HTTPStatus.SERVICE_UNAVAILABLE, self.reason)

    def live(self) -> tuple[HTTPStatus, str]:
        """The answer of `/livez`."""
        if (silent := time.monotonic() - self.seen) < STUCK_SECONDS:
            return HTTPStatus.OK, "live"
        return HTTPStatus.SERVICE_UNAVAILABLE, f"the event loop has not come round for {silent:.0f} s"


def serve(address: Address, health: Health, registry: CollectorRegistry) -> ThreadingHTTPServer:
    """Begins to answer; the server's `shutdown` ends it. Raises OSError if it cannot listen there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/livez":
                    self._send(*health.live())
                case "/readyz":
                    self._send(*health.ready())
                case "/metrics":
                    self._send(HTTPStatus.OK, generate_latest(registry).decode(), CONTENT_TYPE_LATEST)
                case _:
                    self._send(HTTPStatus.NOT_FOUND, "there are /livez, /readyz and /metrics")

        def _send(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Probes come every few seconds; they are not logged."""

    Handler.timeout = 10
    server = ThreadingHTTPServer(address, Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="http", daemon=True).start()
    return server
