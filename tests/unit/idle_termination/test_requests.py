"""How the program asks Ray and the API server: by itself, with a token that nobody else gets."""

import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.payloads.idle_termination import _ask
from testbed.web_server import Answers, serving

pytestmark = pytest.mark.thorough


class Server(Answers):
    """Answers with the path and the token; redirects, or breaks off."""

    asked: list[str] = []  # noqa: RUF012 (of the only server at a time)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/moved":
            return self.reply(302, b"", {"Location": "/elsewhere"})
        body = f'{{"token": "{self.headers.get("Authorization")}"}}'.encode()
        return self.reply(200, body, missing=10 if self.path == "/breaks" else 0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The server's address. A proxy that does not exist is in the environment."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    Server.asked.clear()
    with serving(Server) as url:
        yield url


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


def test_an_answer_that_breaks_off_and_a_missing_token_are_errors_of_the_connection(
    server: str, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="No such file"):
        _ask(f"{server}/api", str(tmp_path / "none"))
    assert Server.asked == []
    with pytest.raises(OSError, match="IncompleteRead"):
        _ask(f"{server}/breaks", None)
