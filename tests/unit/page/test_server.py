"""Who may read a live page."""

import http.client
import threading
from collections.abc import Iterator

import pytest

from stacks.commands.page import server
from stacks.commands.page.server import HEADERS, Server

pytestmark = pytest.mark.thorough


@pytest.fixture
def looks() -> list[str]:
    """The pages that were made."""
    return []


@pytest.fixture
def serving(looks: list[str]) -> Iterator[Server]:
    def look() -> str:
        looks.append(f"page {len(looks)}: \N{CHECK MARK}")
        return looks[-1]

    with Server(0, look, "default-src 'none'") as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(serving: Server, method: str = "GET", path: str = "/", **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", serving.server_port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


def test_the_page_is_served_on_loopback_with_its_policy(serving: Server) -> None:
    status, text, headers = ask(serving)
    assert (status, text) == (200, "page 0: \N{CHECK MARK}")
    assert serving.socket.getsockname()[0] == "127.0.0.1"
    assert HEADERS.items() <= headers.items()
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "Python" not in headers["Server"]
    assert not any(name.lower().startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:1", "evil.example:{port}", "", "[::1]:{port}"]
)
def test_another_host_is_refused(serving: Server, looks: list[str], host: str) -> None:
    status, text, headers = ask(serving, Host=host.format(port=serving.server_port))
    assert (status, looks) == (421, [])
    assert text == f"This server is {serving.url}\n"
    assert "Content-Security-Policy" in headers


def test_this_machines_own_names_are_known_also_without_the_port_of_http(serving: Server) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert ask(serving, Host=f"{name}:{serving.server_port}")[0] == 200
    serving.server_port = 80
    assert [serving.known(host) for host in ("127.0.0.1", "localhost:80", "evil.example")] == [True, True, False]


def test_only_the_page_is_served_and_nothing_can_be_sent(serving: Server, looks: list[str]) -> None:
    assert [ask(serving, path=path)[0] for path in ("/other", "/../etc/passwd")] == [404, 404]
    assert [ask(serving, method)[0] for method in ("POST", "PUT", "DELETE", "OPTIONS")] == [501] * 4
    assert looks == []
    assert ask(serving, "HEAD")[:2] == (200, "")


def test_a_browser_that_leaves_is_no_error(serving: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for error in (ConnectionResetError("gone"), TimeoutError("slow")):
        try:
            raise error
        except OSError:
            serving.handle_error(None, None)
    assert capfd.readouterr().err == ""


def test_many_browsers_look_at_the_cluster_once(
    serving: Server, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {ask(serving)[1] for _ in range(5)} == {looks[0]}
    monkeypatch.setattr(server, "monotonic", lambda: serving._until + 1)
    assert ask(serving)[1] == looks[1]
    assert len(looks) == 2
