"""The workspace behind HTTPS: API v2 at its host, each application at its subdomain, all at 443 alone.

Clients reach it through HTTPS_PROXY, so that they use the names and the port of a real workspace.
"""

import asyncio
import contextlib
import json
import math
import random
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from aiohttp import ClientSession, web

from testbed.cml.workspace import App, RefusedError, Workspace

HOST = "ml.example.test"
KEY = "key-of-the-workspace-4711"

RUNTIMES = ("docker.example/ray:2.60.0", "docker.example/ray-serve:2.60.0", "docker.example/ray-llm:2.60.0")

_PAGE = 50
_DOWNLOAD = ":download"
_HTTPS = 443


@dataclass
class Faults:
    """What goes wrong, by chance."""

    seed: int = 0
    rate: float = 0.0
    """Part of the requests to the API and to heads that fail."""
    dead: float = 0.0
    """Part of the applications that fail as they start."""
    latency: float = 0.0
    """Longest delay of an answer, in seconds."""
    in_a_row: float = math.inf
    """Failures of the same request before one that is answered: a client gives up after a number of tries."""

    draw: random.Random = field(init=False)
    failed: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)  # noqa: S311 (schedules are to be repeated)

    def next(self, request: web.Request) -> str | int | None:
        """What goes wrong with a request: a status, "reset" (nothing is done), "lost" (done, without an answer)."""
        what = f"{request.method} {request.url}"
        if self.draw.random() >= self.rate or self.failed[what] >= self.in_a_row:
            del self.failed[what]
            return None
        self.failed[what] += 1
        return self.draw.choice((429, 500, 502, 503, "reset", "lost"))


Serve = Callable[[App, web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Serves a workspace in a thread."""

    def __init__(
        self, workspace: Workspace, folder: Path, serve: Serve | None = None, faults: Faults | None = None
    ) -> None:
        """`serve`: answers for an application; by default its own port does (`forward`)."""
        self.workspace, self.faults = workspace, faults or Faults()
        self.key = KEY
        self.requests: list[str] = []
        """Method, path and body of each request to the API, without its header of authorization."""
        self._serve = serve or forward
        authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        authority.cert_pem.write_to_path(self.ca_file)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(HOST, f"*.{HOST}").configure_cert(self._tls)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._port = 0
        self.proxy = ""

    def __enter__(self) -> "Server":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)
        return self

    def __exit__(self, *_: object) -> None:
        for app in list(self.workspace.apps.values()):
            with contextlib.suppress(RefusedError):
                self.workspace.delete(app.project, app.id)
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs in its environment."""
        here = "127.0.0.1,localhost"
        proxies = {"HTTPS_PROXY": self.proxy, "https_proxy": self.proxy, "NO_PROXY": here, "no_proxy": here}
        return {**proxies, "CML_API_KEY": KEY}

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._any)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self._port = self._runner.addresses[0][1]
        proxy = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.proxy = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        own = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not own]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """CONNECT of a proxy: the workspace's names at 443, and nothing else."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = head.split(" ", 2)[1]
            host, _, port = target.partition(":")
            if int(port or 0) != _HTTPS or not (host == HOST or host.endswith(f".{HOST}")):
                writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            else:
                there, back = await asyncio.open_connection("127.0.0.1", self._port)
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_copy(reader, back), _copy(there, writer))
        writer.close()

    async def _any(self, request: web.Request) -> web.StreamResponse:
        host = (request.host or "").partition(":")[0]
        if host != HOST:
            return await self._application(host.removesuffix(f".{HOST}"), request)
        try:
            return await self._api(request)
        except RefusedError as error:
            return web.json_response({"message": str(error), "code": 3}, status=error.status)

    async def _application(self, subdomain: str, request: web.Request) -> web.StreamResponse:
        app, fault = await asyncio.to_thread(self.workspace.running, subdomain), self.faults.next(request)
        if app is None:
            return web.Response(status=404, text="no such application")
        if isinstance(fault, int):
            return web.Response(status=fault, text="try later")
        if fault == "reset":
            _reset(request)
        answer = await self._serve(app, request)
        if fault == "lost":
            _reset(request)
        return answer

    async def _api(self, request: web.Request) -> web.Response:
        upload = request.path.endswith("/files")
        body = b"" if upload else await request.read()
        self.requests.append(f"{request.method} {request.path_qs} {body.decode(errors='replace')}")
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            raise RefusedError(401, "invalid key")
        fault = self.faults.next(request)
        if fault == "reset":
            _reset(request)
        elif isinstance(fault, int):
            headers = {"Retry-After": "0"} if fault == 429 else {}
            return web.json_response({"message": "try later"}, status=fault, headers=headers)
        await asyncio.sleep(self.faults.draw.uniform(0, self.faults.latency))
        if request.path.endswith(_DOWNLOAD):
            content = await asyncio.to_thread(self._download, request.method, request.path)
            return web.Response(body=content, content_type="application/octet-stream")
        if upload:
            answer = await self._upload(request)
        else:
            answer = await asyncio.to_thread(self._answer, request.method, request.path, dict(request.query), body)
        if fault == "lost":
            _reset(request)
        return web.json_response(answer)

    def _answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        match method, path.removeprefix("/api/v2/").split("/"):
            case "GET", ["projects", project, "applications"]:
                return _page([app.shown() for app in self.workspace.applications(project)], "applications", query)
            case "POST", ["projects", project, "applications"]:
                app = self.workspace.create(project, json.loads(body))
                if self.faults.draw.random() < self.faults.dead:
                    self.workspace.fail(app)
                return app.shown()
            case "GET", ["projects", project, "applications", id_]:
                return self.workspace.application(project, id_).shown()
            case "DELETE", ["projects", project, "applications", id_]:
                self.workspace.delete(project, id_)
                return {}
            case "DELETE", ["projects", project, "files", *parts] if project in self.workspace.files:
                if self.workspace.files[project].pop("/".join(parts), None) is None:
                    raise RefusedError(404, "no such file")
                return {}
            case "GET", ["runtimes"]:
                return _page([{"image_identifier": each} for each in RUNTIMES], "runtimes", query)
            case "GET", ["nodelabels"]:
                return {"node_labels": [{"max_gpu_per_workload": 4}]}
        raise RefusedError(404, f"{method} {path} was not found")

    def _download(self, method: str, path: str) -> bytes:
        match method, path.removesuffix(_DOWNLOAD).removeprefix("/api/v2/").split("/"):
            case "POST", ["projects", project, "files", *parts]:
                return self.workspace.read(project, "/".join(parts))
        raise RefusedError(404, f"{method} {path} was not found")

    async def _upload(self, request: web.Request) -> dict[str, Any]:
        files = self.workspace.files.get(request.path.split("/")[4])
        if files is None or request.method != "PUT":
            raise RefusedError(404, "no such project")
        for path, content in (await request.post()).items():
            files[path] = content.file.read() if isinstance(content, web.FileField) else str(content).encode()
        return {}


def _page(items: list[dict[str, Any]], key: str, query: dict[str, str]) -> dict[str, Any]:
    start, size = int(query.get("page_token") or 0), min(int(query.get("page_size") or _PAGE), _PAGE)
    following = str(start + size) if start + size < len(items) else ""
    return {key: items[start : start + size], "next_page_token": following}


def _reset(request: web.Request) -> None:
    if request.transport:
        request.transport.abort()
    raise ConnectionResetError


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    with contextlib.suppress(OSError):
        target.close()


async def forward(app: App, request: web.Request) -> web.StreamResponse:
    """Hands a request to the application's CDSW_APP_PORT."""
    url = f"http://127.0.0.1:{app.body['port']}{request.path_qs}"
    headers = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "connection")}
    try:
        async with (
            ClientSession() as session,
            session.request(
                request.method, url, headers=headers, data=await request.read(), allow_redirects=False
            ) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read(), content_type=answer.content_type)
    except OSError as error:
        return web.Response(status=502, text=f"the application does not answer: {error}")
