"""Requests to the API server and to Ray's dashboards."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

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

_MOST_OF_HEAD = 8 * 1024 * 1024
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
        return _answer(f"{self._url}{path}", token, size, self._account / "ca.crt")


def ask_head(url: str, token: str | None, size: int | None = None) -> bytes:
    """The answer of a dashboard, or its last bytes."""
    return _answer(url, token, size, None, _HEAD_SECONDS)


class _Stays(HTTPRedirectHandler):
    """A redirection is an error: its target must not get the token."""

    def redirect_request(self, *_: Any) -> None:
        """No other request."""


def _answer(url: str, token: str | None, size: int | None, authority: Path | None, timeout: int = _SECONDS) -> bytes:
    request = Request(url)  # noqa: S310 (a URL of the API server, or of a head as KubeRay reports it)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    secure = ssl.create_default_context(cafile=str(authority)) if url.startswith("https:") and authority else None
    # No proxy of the image's environment gets the request, with its token.
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=secure), _Stays)
    try:
        with opener.open(request, timeout=timeout) as answer:
            if size is not None:
                return _end(answer, size)
            return answer.read() if authority else _whole(answer)
    except HTTPException as error:
        raise OSError(repr(error)) from error


def _whole(answer: Any) -> bytes:
    found: bytes = answer.read(_MOST_OF_HEAD + 1)
    if len(found) > _MOST_OF_HEAD:
        raise ValueError(f"the answer has more than {_MOST_OF_HEAD} bytes")
    return found


def _end(answer: Any, size: int) -> bytes:
    kept = b""
    while part := answer.read(_PART):
        kept = (kept + part)[-size:]
    return kept


def _of_the_pod() -> str:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
