"""A web server on loopback for tests."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answers(BaseHTTPRequestHandler):
    """What such a server answers; it writes nothing into the output of the tests."""

    def reply(self, status: int, body: bytes, headers: Mapping[str, str] = {}, missing: int = 0) -> None:
        """Answers a request. `missing`: how many bytes it promises that do not come."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body) + missing)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written."""


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[str]:
    """Runs a server; yields its URL."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def serving(answers: Callable[..., BaseHTTPRequestHandler]) -> AbstractContextManager[str]:
    """Serves these answers."""
    return running(ThreadingHTTPServer(("127.0.0.1", 0), answers))
