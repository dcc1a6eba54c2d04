"""How the program asks Ray and the API server: by itself, with a token that nobody else gets."""

import threading
import urllib.error
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from components.payloads.idle_termination import _ask

pytestmark = pytest.mark.thorough


class Server(BaseHTTPRequestHandler):
    """Answers with the path and the token; redirects, or breaks off."""

    asked: list[str] = []  # noqa: RUF012 (of the only server at a time)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        body = f'{{"token": "{self.headers.get("Authorization")}"}}'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (10 if self.path == "/breaks" else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not into the output of the tests."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The server's address. A proxy that does not exist is in the environment."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    Server.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_the_token_is_read_at_each_request_and_no_proxy_gets_it(server: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    for current in ("first", "renewed"):
        token.write_text(f"{current}\n")
        assert _ask(f"{server}/api", str(token)) == {"token": f"Bearer {current}"}
    assert _ask(f"{server}/api", None) == {"token": "None"}


def test_a_redirection_is_not_followed(server: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    with pytest.raises(urllib.error.HTTPError, match="302"):
        _ask(f"{server}/moved", str(tmp_path / "token"))
    assert Server.asked == ["/moved"]


def test_an_answer_that_breaks_off_is_an_error_of_the_connection(server: str) -> None:
    with pytest.raises(OSError, match="IncompleteRead"):
        _ask(f"{server}/breaks", None)


def test_a_missing_token_is_one_too(server: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        _ask(f"{server}/api", str(tmp_path / "none"))
    assert Server.asked == []
