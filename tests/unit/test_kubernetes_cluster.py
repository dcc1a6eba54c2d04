"""The session by the Kubernetes client, with a server on this machine; and how it connects."""

import json
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, cast

import pulumi
import pytest

from components.cluster import ClusterUnreachableError, ConflictError, Connection, ForbiddenError, UnauthorizedError
from components.kubernetes_cluster import KubernetesCluster, cluster_of
from testbed.recorder import record
from testbed.web_server import Answers, serving

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


class Server(Answers):
    """Answers with a log of two lines, the second one only after the reader has the first; or refuses."""

    protocol_version = "HTTP/1.1"
    first_was_read = threading.Event()
    sent: ClassVar[list[tuple[str, Any]]] = []
    """The content types and bodies of changes."""

    def do_GET(self) -> None:
        if self.path in ANSWERS or "/pods/" not in self.path:
            listed = json.dumps({"items": [{"path": self.path}]}).encode()
            found = (HTTPStatus.OK, listed) if "nodes" in self.path else (HTTPStatus.NOT_FOUND, b"")
            status, answer = ANSWERS.get(self.path, found)
            self.reply(status, answer)
            return
        pod = self.path.split("/pods/")[1].partition("/")[0]
        if pod.isdecimal():
            self.reply(int(pod), json.dumps({"message": f"no log of {pod}"}).encode())
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
        self.sent.append((self.headers["Content-Type"], json.loads(sent)))
        self.reply(HTTPStatus.OK, sent)

    def part(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


@pytest.fixture(autouse=True)
def in_memory() -> None:
    """The sessions here are real."""


@pytest.fixture
def cluster() -> Iterator[KubernetesCluster]:
    """A session with the server."""
    with serving(Server) as url:
        yield KubernetesCluster(Connection(kubeconfig=KUBECONFIG.replace("https://192.0.2.1", url)))


@pytest.fixture
def read(cluster: KubernetesCluster) -> Read:
    """Follows the log of a pod."""
    Server.first_was_read.clear()
    return lambda pod: cluster.log("team-a", pod, "ray-head", follow=True, tail=2)


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


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, ForbiddenError), (400, ClusterUnreachableError), (409, ConflictError), (422, ConflictError)],
)
def test_a_refusal_is_an_error_with_its_message(
    cluster: KubernetesCluster, read: Read, status: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match=f"no log of {status}"):
        next(read(str(status)))
    with pytest.raises(error, match=f"the API server refuses: no log of {status}"):
        cluster.get("v1", "pods", "team-a", str(status))
    # What does not exist has no parts.
    assert list(read("404")) == []


def test_a_mapping_and_a_list_are_sent_as_json(cluster: KubernetesCluster) -> None:
    Server.sent.clear()
    sent = {"spec": {"suspend": False}}
    assert cluster.patch("ray.io/v1", "rayclusters", "team-a", "training", sent) == sent
    step = [{"op": "add", "path": "/spec/suspend", "value": False}]
    with pytest.raises(ClusterUnreachableError, match="not an object of Kubernetes"):  # The server returns the list.
        cluster.patch("ray.io/v1", "rayclusters", "team-a", "training", step)
    assert Server.sent == [
        ("application/merge-patch+json", sent),
        ("application/json-patch+json", step),
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/login", "not an object of Kubernetes"),
        ("/null", "not an obj"),
        ("/moved", "302 Found"),
        ("/latin", "403 Forb"),
    ],
)
def test_an_answer_of_another_server_is_an_error(cluster: KubernetesCluster, path: str, message: str) -> None:
    with pytest.raises(ClusterUnreachableError, match=message):
        cluster.request("GET", path)


def test_the_path_of_a_list_has_its_selectors(cluster: KubernetesCluster) -> None:
    assert cluster.list("v1", "nodes", labels="pool=a100", fields="metadata.name=one") == (
        {"path": "/api/v1/nodes?labelSelector=pool%3Da100&fieldSelector=metadata.name%3Done"},
    )
    assert cluster.list("ray.io/v1", "rayjobs") is None


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
    assert KubernetesCluster()._client.configuration.host == "https://192.0.2.1"


@pytest.mark.parametrize("text", ["- a list\n", "a text\n"])
def test_a_file_that_is_no_kubeconfig_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "config").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(ClusterUnreachableError, match=r"no usable kubeconfig: .* is not a mapping"):
        KubernetesCluster().request("GET", "/")


def test_a_kubeconfig_that_is_given_goes_before_the_ambient_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    text = KUBECONFIG.replace("name: here, context", "name: other, context")
    given = Connection("other", text)
    assert KubernetesCluster(given)._client.configuration.host == "https://192.0.2.1"
    with pytest.raises(ClusterUnreachableError, match=r"no usable kubeconfig: .*missing"):
        KubernetesCluster(Connection("missing", text)).request("GET", "/")
    with pytest.raises(ClusterUnreachableError, match="no usable kubeconfig"):
        KubernetesCluster(Connection(kubeconfig="- a list")).request("GET", "/")
    later = Connection(kubeconfig=cast(Any, object()))  # An output, which is not made outside of a program.
    with pytest.raises(ClusterUnreachableError, match="not known yet"):
        KubernetesCluster(later).request("GET", "/")


class Expiring(Answers):
    """Accepts the token that is valid now."""

    valid: ClassVar[str] = ""
    refused: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        shown = self.headers["Authorization"]
        accepted = shown == f"Bearer {self.valid}"
        if not accepted:
            self.refused.append(shown)
        answer = b'{"items": []}' if accepted else b'{"message": "Unauthorized"}'
        self.reply(HTTPStatus.OK if accepted else HTTPStatus.UNAUTHORIZED, answer)


def test_a_token_that_ends_is_read_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    Expiring.refused.clear()
    with serving(Expiring) as url:

        def log_in(token: str) -> None:
            text = KUBECONFIG.replace("https://192.0.2.1", url)
            kubeconfig.write_text(text.replace("token: any", f"token: {token}"))

        log_in("first")
        Expiring.valid, cluster = "first", KubernetesCluster()
        assert cluster.list("v1", "pods", "team-a") == ()
        Expiring.valid = "second"
        with pytest.raises(UnauthorizedError, match="the API server refuses: Unauthorized"):
            cluster.list("v1", "pods", "team-a")
        assert Expiring.refused == ["Bearer first"] * 2
        log_in("second")
        assert cluster.list("v1", "pods", "team-a") == ()
        assert Expiring.refused == ["Bearer first"] * 3


def test_a_dynamic_resource_has_the_session_of_its_inputs() -> None:
    assert Connection().inputs() == {"connection": {}}
    given = Connection("prod", None)
    assert given.inputs() == {"connection": {"context": "prod"}}
    assert cluster_of(given.inputs()).connection == given
    assert cluster_of(given.inputs()) is cluster_of({"connection": {"context": "prod"}})
    assert cluster_of({}).connection == Connection()
    assert "token" not in repr(Connection(kubeconfig=KUBECONFIG))
    made: dict[str, Any] = {}
    record(lambda: made.update(Connection(kubeconfig=KUBECONFIG).inputs()["connection"]))
    assert isinstance(made["kubeconfig"], pulumi.Output)
