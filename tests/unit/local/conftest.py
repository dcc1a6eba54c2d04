"""A server of this machine that answers as an API server does."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from testbed.web_server import Answers, serving


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

    class Handler(Answers):
        def answer(self) -> None:
            request = f"{self.command} {self.path.partition('?')[0]}"
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            served.got.append((request, json.loads(sent) if sent else None))
            found = request in served.answers
            body = json.dumps(served.answers[request] if found else {"message": "not found"}).encode()
            self.reply(200 if found else 404, body, {"Content-Type": "application/json"})

        do_GET = do_POST = do_PATCH = do_DELETE = answer

    with serving(Handler) as served.url:
        yield served
