"""Answers with the records, on the pod's loopback address.

/runs                 all records, without their pods and events, and what the program could not do
/runs/NAME            a record
/runs/NAME/log/1      the log of an attempt
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .store import DETAILS, Store

_RUN = re.compile(r"/runs/(?P<name>[a-z0-9.-]+)(?:/log/(?P<attempt>[0-9]{1,4}))?")


def answer(store: Store, problems: Iterable[str], path: str) -> tuple[HTTPStatus, bytes]:
    """The answer to a GET."""
    if path == "/runs":
        runs = [
            {"id": name, **{key: value for key, value in each.items() if key not in DETAILS}}
            for name, each in list(store.records.items())
        ]
        return HTTPStatus.OK, _json({"problems": list(problems), "runs": runs})
    found = _RUN.fullmatch(path)
    if found is None or found["name"] not in store.records:
        return HTTPStatus.NOT_FOUND, b""
    if found["attempt"] is None:
        record = store.whole(found["name"])
        return (HTTPStatus.NOT_FOUND, b"") if record is None else (HTTPStatus.OK, _json(record))
    log = store.log(found["name"], int(found["attempt"]))
    return (HTTPStatus.NOT_FOUND, b"") if log is None else (HTTPStatus.OK, log)


def serve(store: Store, problems: Callable[[], Iterable[str]], port: int) -> ThreadingHTTPServer:
    """Answers in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                status, body = answer(store, problems(), self.path)
            except (OSError, ValueError) as error:
                status, body = HTTPStatus.INTERNAL_SERVER_ERROR, repr(error).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Requests are no news."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _json(body: Any) -> bytes:
    return json.dumps(body, default=str).encode()
