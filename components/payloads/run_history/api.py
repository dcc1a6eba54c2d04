"""Requests to the API server and to Ray's dashboards."""

from __future__ import annotations

import json
import os
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import quote
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

Body = Any
"""An object as the API server or Ray returns it."""

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes mounts the account's token, and the certificate authority of the API server."""

_PAGE = 200
"""Objects of a list that are read at once."""

_SECONDS = 15
"""Within which the API server has to answer."""

_HEAD_SECONDS = 5
"""Within which a head has to answer. One that does not must not keep the program from another that ends soon."""

MOST_SECONDS = 10
"""Within which the whole answer of a head has to come. One that sends it byte by byte must not keep the program."""

_MOST_OF_HEAD = 4 * 1024 * 1024
"""Bytes of a head's answer that is read as a whole. People's code decides what it answers."""

_PART = 64 * 1024
"""Bytes that are read at once."""


class ApiServer:
    """The API server, with the rights of the pod's account."""

    def __init__(self, url: str | None = None, account: Path = ACCOUNT) -> None:
        self._url, self._account = url or _of_the_pod(), account

    def read(self, path: str) -> Body:
        """The JSON of an answer. Raises OSError or ValueError, as all functions here do."""
        return json.loads(self._read(path, None))

    def list(self, path: str, query: str) -> Iterator[Body]:
        """The objects of a list, which is read in pages."""
        first, after = f"{path}?limit={_PAGE}&{query}", ""
        while True:
            page = self.read(f"{first}&continue={after}" if after else first)
            yield from page["items"]
            after = quote((page.get("metadata") or {}).get("continue") or "")
            if not after:
                return

    def read_end(self, path: str, size: int) -> bytes:
        """The last bytes of an answer, `size` at most, such as the end of a log."""
        return self._read(path, size)

    def _read(self, path: str, size: int | None) -> bytes:
        # The kubelet renews the token.
        token = (self._account / "token").read_text().strip()
        authority = self._account / "ca.crt"
        secure = ssl.create_default_context(cafile=str(authority)) if self._url.startswith("https:") else None
        with _opened(f"{self._url}{path}", token, HTTPSHandler(context=secure), _SECONDS) as answer:
            return bytes(answer.read()) if size is None else _end(iter(lambda: answer.read(_PART), b""), size)


def ask_head(
    url: str,
    token: str | None,
    size: int | None = None,
    authority: str | None = None,
    seconds: float = MOST_SECONDS,
) -> bytes:
    """The answer of a dashboard, or its last bytes. `authority`: PEM; None: the system's. `seconds`: within which it
    has to come. Raises OSError or ValueError."""
    if token and not token.isprintable():
        # The error of the standard library would show it.
        raise ValueError("the token has unprintable characters")
    secure = ssl.create_default_context(cadata=authority) if authority else None
    limited = _Limited(secure)
    # Later than the limit of what follows the headers, whose error says more.
    timer = Timer(seconds + 1, limited.shut)
    timer.start()
    try:
        with _opened(url, token, limited, _HEAD_SECONDS) as answer:
            parts = _parts(answer, seconds)
            return _whole(parts) if size is None else _end(parts, size)
    finally:
        timer.cancel()


class _Stays(HTTPRedirectHandler):
    """A redirection is an error: its target must not get the token."""

    def redirect_request(self, *_: Any) -> None:
        """No other request."""


class _Kept:
    """A connection whose socket is kept for the time limit; http.client forgets it once an answer begins."""

    sock: Any

    def __init__(self, sockets: list[Any], *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._sockets = sockets

    def connect(self) -> None:
        """As that of its kind."""
        super().connect()  # type: ignore[misc] # of HTTPConnection
        self._sockets.append(self.sock)


class _Plain(_Kept, HTTPConnection):
    pass


class _Secure(_Kept, HTTPSConnection):
    pass


class _Limited(HTTPHandler, HTTPSHandler):
    """Opens connections that can be shut, also while a head sends headers byte by byte."""

    _context: ssl.SSLContext | None

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(context=context)
        self._sockets: list[Any] = []

    def http_open(self, request: Request) -> Any:
        """By http."""
        return self.do_open(partial(_Plain, self._sockets), request)

    def https_open(self, request: Request) -> Any:
        """By https."""
        return self.do_open(partial(_Secure, self._sockets), request, context=self._context)

    def shut(self) -> None:
        """Ends what is being read."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def _opened(url: str, token: str | None, handler: HTTPSHandler, timeout: int) -> Iterator[Any]:
    request = Request(url)  # noqa: S310 (a URL of the API server, of a head as KubeRay reports it, or of the stack)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    # No proxy of the image's environment gets the request, with its token.
    opener = build_opener(ProxyHandler({}), handler, _Stays)
    try:
        with opener.open(request, timeout=timeout) as answer:
            yield answer
    except HTTPException as error:
        raise OSError(repr(error)) from error


def _parts(answer: Any, seconds: float) -> Iterator[bytes]:
    until = time.monotonic() + seconds
    while part := answer.read1(_PART):
        yield part
        if time.monotonic() > until:
            raise TimeoutError(f"the answer has not ended after {seconds:g} seconds")


def _whole(parts: Iterable[bytes]) -> bytes:
    found, size = [], 0
    for part in parts:
        found.append(part)
        size += len(part)
        if size > _MOST_OF_HEAD:
            raise ValueError(f"the answer has more than {_MOST_OF_HEAD} bytes")
    return b"".join(found)


def _end(parts: Iterable[bytes], size: int) -> bytes:
    kept = b""
    for part in parts:
        kept = (kept + part)[-size:]
    return kept


def _of_the_pod() -> str:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
