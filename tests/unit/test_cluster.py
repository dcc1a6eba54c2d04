"""Answers of the API server that arrive in parts, read with the real client from a server on this machine."""

import json
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kubernetes
import pytest

from components.cluster import ClusterUnreachableError, ForbiddenError, request, stream

pytestmark = pytest.mark.unit

Read = Callable[[str], Iterator[bytes]]

BREAKS = "breaks"
"""A pod whose log breaks off."""


class Server(BaseHTTPRequestHandler):
    """Answers with a log of two lines, the second one only after the reader has the first; or refuses."""

    protocol_version = "HTTP/1.1"
    first_was_read = threading.Event()

    def do_GET(self) -> None:
        pod = self.path.split("/pods/")[1].partition("/")[0]
        if pod.isdecimal():
            body = json.dumps({"message": f"no log of {pod}"}).encode()
            self.send_response(int(pod))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.part(b"first")
        assert self.first_was_read.wait(30)
        if pod == BREAKS:
            self.close_connection = True
            return
        self.part(b"second")
        self.part(b"")

    def do_PATCH(self) -> None:
        """Returns what it gets."""
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def part(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, *_: object) -> None:
        """Nothing is written."""


@pytest.fixture
def client() -> Iterator[kubernetes.client.ApiClient]:
    """A client of the server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        configuration = kubernetes.client.Configuration()
        configuration.host = f"http://127.0.0.1:{server.server_port}"
        configuration.proxy = None
        yield kubernetes.client.ApiClient(configuration)
        server.shutdown()


@pytest.fixture
def read(client: kubernetes.client.ApiClient) -> Read:
    """Follows the log of a pod."""
    Server.first_was_read.clear()
    call = kubernetes.client.CoreV1Api(client).read_namespaced_pod_log
    return lambda pod: stream(call, pod, "team-a", container="ray-head", follow=True, tail_lines=2)


def test_parts_are_passed_on_as_they_arrive(read: Read) -> None:
    parts = read("head")
    assert next(parts) == b"first"
    Server.first_was_read.set()
    assert list(parts) == [b"second"]


def test_an_answer_that_breaks_off_is_an_error_after_its_parts(read: Read) -> None:
    parts = read(BREAKS)
    assert next(parts) == b"first"
    Server.first_was_read.set()
    with pytest.raises(ClusterUnreachableError, match="has ended the answer"):
        next(parts)


def test_a_refusal_is_an_error_with_its_message(read: Read) -> None:
    with pytest.raises(ForbiddenError, match="no log of 403"):
        next(read("403"))
    with pytest.raises(ClusterUnreachableError, match="no log of 400"):
        next(read("400"))


def test_an_object_that_does_not_exist_has_no_parts(read: Read) -> None:
    assert list(read("404")) == []


def test_a_mapping_is_sent_as_json(client: kubernetes.client.ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.cluster.connect", lambda _context: client)
    merged = {"Content-Type": "application/merge-patch+json"}
    sent = {"spec": {"suspend": False}}
    assert request(None, "PATCH", "/object", headers=merged, body=sent) == sent
