"""A server of this machine that answers as an API server does."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class ApiServer:
    """Its address, its answers by method and path (any other path does not exist), and the bodies that it got."""

    url: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    got: list[tuple[str, Any]] = field(default_factory=list)


@pytest.fixture
def api_server() -> Iterator[ApiServer]:
    """Such a server."""
    served = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            request = f"{self.command} {self.path.partition('?')[0]}"
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            served.got.append((request, json.loads(sent) if sent else None))
            found = request in served.answers
            body = json.dumps(served.answers[request] if found else {"message": "not found"}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 -- http.server prescribes the names

        def log_message(self, *_: object) -> None:
            """Nothing is written."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        served.url = f"http://127.0.0.1:{server.server_port}"
        yield served
        server.shutdown()
