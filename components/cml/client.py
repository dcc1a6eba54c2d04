"""A client of Cloudera ML's API v2: applications, files, runtimes. It knows nothing of Ray.

Reads, deletions and uploads are repeated after 429, 5xx and lost connections, with growing pauses. A creation is sent
once: a lost answer may be that of an application that exists. Whoever creates looks for its name before the next try.
"""

import os
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx
from httpx_retries import Retry, RetryTransport

from components.cml.applications import Application
from components.cml.authorities import certificates

KEY_VARIABLE = "CML_API_KEY"
"""Variable of the environment with the key, which wins over the one in the stack's configuration."""

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_PAGE = 100
_TRIES = 6
_LONGEST_PAUSE = 20.0
_LONGEST_MESSAGE = 300
_REPEATED = (429, 500, 502, 503, 504)
_HIDDEN = "[hidden]"
_KEY = re.compile(r"[!-~]+")
"""What a header can have after `Bearer`: no text with a break, which httpx would show in its error."""


class CmlError(Exception):
    """The API refused or did not answer; the message has what to do. Neither key nor token are in it."""


class QuotaError(CmlError):
    """There are no resources for an application now: a quota, or no free node."""


class NotAnsweredError(CmlError):
    """The server is overloaded, fails or is unreachable: what was asked may have been done."""


class ConflictError(CmlError):
    """The name or the subdomain of an application is in use."""


class NotFoundError(CmlError):
    """What was asked for does not exist, or the key may not see it."""


def api_key(configured: str | None = None) -> str:
    """The key from the environment, or else the configured one. Raises CmlError."""
    key = (os.environ.get(KEY_VARIABLE) or configured or "").strip()
    if not key:
        raise CmlError(
            f"no API key of Cloudera ML: set {KEY_VARIABLE} in the environment, or run "
            "`pulumi config set --secret ray-platform:cmlApiKey`"
        )
    if not _KEY.fullmatch(key):
        raise CmlError(f"the API key has a space or a letter that no key has: copy it again, and set {KEY_VARIABLE}")
    return key


def tls(ca_file: str | None) -> ssl.SSLContext:
    """The authorities that certificates are validated against. Raises CmlError if the file has none."""
    if not ca_file:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=certificates(ca_file))
    except (OSError, ValueError, ssl.SSLError) as error:
        raise CmlError(f"caFile {ca_file!r} is not a file with certificates (PEM): {error}") from None


class Client:
    """Calls the API of one host with one key. Every method raises CmlError."""

    def __init__(
        self, host: str, key: str, ca_file: str | None = None, pause: float = 0.5, secrets: Iterable[str] = ()
    ) -> None:
        """`host`: `https://ml.example.com`. `pause`: seconds, the unit of the pauses between tries. `secrets`: texts
        that no message shows, beside the key: a server may repeat what it was sent."""
        self._host, self._secrets = host, (key, *secrets)
        retry = Retry(
            total=_TRIES,
            backoff_factor=pause,
            max_backoff_wait=_LONGEST_PAUSE,
            backoff_jitter=1.0,
            respect_retry_after_header=True,
            status_forcelist=_REPEATED,
            allowed_methods=("GET", "PUT", "DELETE"),
        )
        context = tls(ca_file)
        # A transport of one's own ignores the proxies of the environment, unless they are mounted.
        transport = RetryTransport(transport=httpx.HTTPTransport(verify=context, proxy=proxy(host)), retry=retry)
        self._http = httpx.Client(
            base_url=f"{host}/api/v2/",
            headers={"Authorization": f"Bearer {key}"},
            timeout=_TIMEOUT,
            transport=transport,
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def applications(self, project: str, prefix: str = "") -> list[Application]:
        """All applications of a project whose names begin with `prefix`."""
        listed = self._pages(f"projects/{quote(project, safe='')}/applications", "applications")
        # A page begins with the end of the one before it if an application was created meanwhile.
        found = {body["id"]: Application.of(project, body) for body in listed}
        return [each for each in found.values() if each.name.startswith(prefix)]

    def create(self, project: str, body: Mapping[str, Any]) -> None:
        """Creates an application, which starts at once. NotAnsweredError: it may exist."""
        self._call("POST", f"projects/{quote(project, safe='')}/applications", json=dict(body))

    def delete(self, application: Application) -> None:
        """Stops and deletes an application; one that does not exist is deleted already."""
        with suppress(NotFoundError):
            self._call("DELETE", f"projects/{quote(application.project, safe='')}/applications/{application.id}")

    def upload(self, project: str, path: str, content: bytes) -> None:
        self._call("PUT", f"projects/{quote(project, safe='')}/files", files={path: (path, content)})

    def remove(self, project: str, path: str) -> None:
        """Deletes a file of a project, if it exists."""
        with suppress(NotFoundError):
            self._call("DELETE", f"projects/{quote(project, safe='')}/files/{quote(path)}")

    def download(self, project: str, path: str) -> bytes | None:
        """The content of a file of a project; None if it does not exist."""
        try:
            return self._answer("POST", f"projects/{quote(project, safe='')}/files/{quote(path)}:download").content
        except NotFoundError:
            return None

    def runtimes(self) -> list[str]:
        """The identifiers of the runtimes that may be used."""
        return [str(each.get("image_identifier") or "") for each in self._pages("runtimes", "runtimes")]

    def most_gpus(self) -> int | None:
        """The most GPUs of an application; None if the server does not report it."""
        labels = list(self._pages("nodelabels", "node_labels"))
        limits = [int(each["max_gpu_per_workload"]) for each in labels if each.get("max_gpu_per_workload") is not None]
        return max(limits, default=None)

    def _pages(self, path: str, key: str) -> Iterator[dict[str, Any]]:
        token, seen = "", {""}
        while True:
            page = self._call("GET", path, params={"page_size": str(_PAGE), **({"page_token": token} if token else {})})
            yield from page.get(key) or ()
            token = str(page.get("next_page_token") or "")
            if token in seen:
                return
            seen.add(token)

    def _answer(self, method: str, path: str, **content: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **content)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise NotAnsweredError(
                self._hidden(f"{self._host} does not answer ({why}): run the command again")
            ) from None
        if answer.is_success:
            return answer
        raise self._error(f"{method} {path}", answer)

    def _call(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        answer = self._answer(method, path, **content)
        try:
            return dict(answer.json()) if answer.content else {}
        except (ValueError, TypeError):
            raise CmlError(
                f"{self._host} answers {method} {path} with no object of JSON: set `host` to the address of the "
                "workspace of Cloudera ML, without a path"
            ) from None

    def _error(self, what: str, answer: httpx.Response) -> CmlError:
        # Shortened last, because a part of a secret would not be recognized.
        status, text = answer.status_code, self._hidden(_message(answer))[:_LONGEST_MESSAGE]
        if status == HTTPStatus.UNAUTHORIZED:
            return CmlError(
                f"{self._host} does not accept the API key (401): create another one, and set {KEY_VARIABLE}"
            )
        if status == HTTPStatus.FORBIDDEN and "quota" not in text.lower():
            return CmlError(
                f"the API key may not {what} (403): {text}. Its user needs to be a contributor of the project"
            )
        if status == HTTPStatus.NOT_FOUND:
            return NotFoundError(f"{what} was not found (404): check the project's id, and that the key's user sees it")
        if status in _REPEATED:
            return NotAnsweredError(f"{self._host} fails at {what} ({status}): {text}. Run the command again")
        if status == HTTPStatus.CONFLICT:
            return ConflictError(f"{self._host} refuses {what} (409): {text}. Delete the other application, or rename")
        if "quota" in text.lower():
            return QuotaError(f"{what} is over a quota ({status}): {text}. Ask for less, or for a larger quota")
        return CmlError(f"{self._host} refuses {what} ({status}): {text}")

    def _hidden(self, text: str) -> str:
        for each in filter(None, self._secrets):
            text = text.replace(each, _HIDDEN)
        return text


def _message(answer: httpx.Response) -> str:
    try:
        body = answer.json()
        text = body.get("message") or body.get("error") or "" if isinstance(body, Mapping) else ""
    except ValueError:
        text = answer.text
    return " ".join(str(text).split()) or answer.reason_phrase


def proxy(url: str) -> httpx.Proxy | None:
    """The proxy that the environment sets for an address (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). Raises CmlError."""
    from urllib.request import getproxies, proxy_bypass

    address = httpx.URL(url)
    found = None if proxy_bypass(address.host) else getproxies().get(address.scheme)
    if not found:
        return None
    try:
        # As curl and httpx itself read it: `proxy.example:3128`.
        return httpx.Proxy(found if "://" in found else f"http://{found}")
    except (ValueError, httpx.InvalidURL):
        # It may have a password.
        name = f"{address.scheme.upper()}_PROXY"
        raise CmlError(f"{name} is not the address of a proxy: write http://HOST:PORT") from None
