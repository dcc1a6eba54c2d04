"""Admits only requests with a key to the applications of a service: this very text runs in the proxies of Ray Serve.

Ray calls `middlewares` by RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH (python/ray/serve/_private/http_util.py). The file
`keys` beside this one has the keys, one a line. It is read for each request: Kubernetes replaces it when its Secret
changes.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

KEYS = Path(__file__).with_name("keys")

HEALTH = "/-/healthz"
"""Path that KubeRay and the pods' probes ask; the proxy itself answers it."""

REFUSED = b'{"error": {"message": "the header Authorization has no valid key", "type": "invalid_request_error"}}'
"""In the form of OpenAI's API."""


class RequireKey:
    """An ASGI application in front of another one."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Passes on what has a key, health checks, and what is not a request."""
        kind = scope["type"]
        if kind not in ("http", "websocket") or scope["path"] == HEALTH or admitted(scope["headers"]):
            await self._app(scope, receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": REFUSED})


def admitted(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a header is `Authorization: Bearer KEY` with one of the keys."""
    given = [value for name, value in headers if name.lower() == b"authorization"]
    keys = [line.strip() for line in KEYS.read_bytes().splitlines() if line.strip()]
    return any(hmac.compare_digest(value, b"Bearer " + key) for value in given for key in keys)


def middlewares() -> list[Any]:
    """What Ray puts before its proxy."""
    from starlette.middleware import Middleware  # type: ignore[import-not-found] # only in Ray's images

    return [Middleware(RequireKey)]
