"""Answers of the API server that arrive in parts, read with the real client from a server on this machine."""

import json
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import kubernetes
import pytest

from components.client import ClusterUnreachableError, ForbiddenError, connect, request, stream

pytestmark = pytest.mark.unit

Read = Callable[[str], Iterator[bytes]]

BREAKS = "breaks"
"""A pod whose log breaks off."""


ANSWERS = {
    "/login": (HTTPStatus.OK, b"<html>Log in</html>"),
    "/null": (HTTPStatus.OK, b"null"),
    "/moved": (HTTPStatus.FOUND, b""),
    "/latin": (HTTPStatus.FORBIDDEN, b"\xfcber"),
}
"""Answers of other servers than Kubernetes', by their paths."""


class Server(BaseHTTPRequestHandler):
    """Answers with a log of two lines, the second one only after the reader has the first; or refuses."""

    protocol_version = "HTTP/1.1"
    first_was_read = threading.Event()

    def do_GET(self) -> None:
        if self.path in ANSWERS:
            status, answer = ANSWERS[self.path]
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            return
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
    monkeypatch.setattr("components.client.connect", lambda _context: client)
    merged = {"Content-Type": "application/merge-patch+json"}
    sent = {"spec": {"suspend": False}}
    assert request(None, "PATCH", "/object", headers=merged, body=sent) == sent


@pytest.mark.parametrize(
    ("path", "message"),
    [("/login", "no object of Kubernetes"), ("/null", "no object"), ("/moved", "302 Found"), ("/latin", "403 Forb")],
)
def test_an_answer_of_another_server_is_an_error(
    client: kubernetes.client.ApiClient, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.setattr("components.client.connect", lambda _context: client)
    with pytest.raises(ClusterUnreachableError, match=message):
        request(None, "GET", path)


KUBECONFIG = """\
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://192.0.2.1"}}]
users: [{name: me, user: {token: any}}]
current-context: here
"""


@pytest.mark.parametrize("variable", [None, ""], ids=["no variable", "an empty variable"])
@pytest.mark.parametrize("pod", [False, True], ids=["on a machine", "in a pod"])
def test_the_kubeconfig_of_the_home_folder_goes_before_the_account_of_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, pod: bool
) -> None:
    """As with Pulumi's provider and kubectl: otherwise a guard would read another cluster than `up` changes."""
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(KUBECONFIG)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in (("KUBECONFIG", variable), ("KUBERNETES_SERVICE_HOST", "192.0.2.9" if pod else None)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert connect.__wrapped__(None).configuration.host == "https://192.0.2.1"


@pytest.mark.parametrize("text", ["- a list\n", "a text\n"])
def test_a_file_that_is_no_kubeconfig_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "config").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(ClusterUnreachableError, match=r"no usable kubeconfig: .* is no mapping"):
        connect.__wrapped__(None)
