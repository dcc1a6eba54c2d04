"""Runs in an application of Cloudera ML with the Python of its runtime: starts a node of Ray, head or worker.

Never imported by the stack. It uses the standard library, of Python 3.9 or newer, and Ray. Its settings are JSON in the
variable RAY_PLATFORM (manifests.Node). Ray's token is in RAY_AUTH_TOKEN, where Ray reads it, too.

An application is reached from outside through HTTPS at its subdomain, which ends at CDSW_APP_PORT. There the head
answers, to callers with the token, `GET /ray-platform/nodes` and `POST /ray-platform/drain`. It hands what is below the
path of Serve to the proxy of Ray Serve, for callers with the token or the key of Serve, and everything else to Ray's
dashboard, which asks for the token itself. From the first answer a worker learns where Ray's GCS listens: the address
of the head's pod, which is not known before it runs. A worker answers only that it is one.

The program ends when Ray ends, so that Cloudera ML shows the application as stopped or failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

NODES, DRAIN = "/ray-platform/nodes", "/ray-platform/drain"

REASON = "the stack has fewer applications of its group now, or other settings for them"

_HOST = "127.0.0.1"
"""Where an application has to listen (Cloudera ML, Applications: web applications listen on 127.0.0.1)."""

API_KEYS = ("CDSW_APIV2_KEY", "CDSW_API_KEY", "CML_API_KEY")
"""Variables in which Cloudera ML or its users give a workload the key of a user. Ray hands its environment to every
task, and needs none of them."""

_INSIDE = "RAY_PLATFORM_INSIDE"
_LIMIT = 64 * 1024
_LONGEST_BODY = 16 * 1024 * 1024
"""Bytes. The name of a node and its time take up to a hundred."""
_LOOK_SECONDS = 60 * 20
_PAUSE_SECONDS = 2.0


def main() -> int:
    """Starts the node and answers until Ray ends. Returns its exit code."""
    settings = json.loads(os.environ["RAY_PLATFORM"])
    problem = _problem(settings)
    if problem:
        print(problem, file=sys.stderr)
        return 1
    return asyncio.run(_run(settings, int(os.environ["CDSW_APP_PORT"]), os.environ["CDSW_IP_ADDRESS"]))


def _problem(settings: dict[str, Any]) -> str:
    version = settings["rayVersion"]
    advice = f"use a runtime with it, or run `pip install 'ray[default,serve]=={version}'` in a session of the project"
    try:
        import ray
    except ImportError:
        return f"the runtime has no Ray, and Ray {version} is set: {advice}"
    return "" if ray.__version__ == version else f"the runtime has Ray {ray.__version__}, not {version}: {advice}"


async def _run(settings: dict[str, Any], port: int, address: str) -> int:
    head = settings.get("head")
    dashboard = settings["dashboardPort"] if head is None else None
    front = Front(dashboard, f"{address}:{settings['port']}", settings["servePath"], settings["servePort"])
    server = await asyncio.start_server(front.answer, _HOST, port, limit=_LIMIT)
    async with server:
        gcs = None
        if head is not None:
            gcs = await asyncio.get_running_loop().run_in_executor(None, _gcs_address, head, settings.get("ca"))
        print(f"Ray starts at {address}", flush=True)
        ray = await asyncio.create_subprocess_exec(*command(settings, address, gcs))
        return await ray.wait()


def command(settings: dict[str, Any], address: str, gcs: str | None) -> list[str]:
    """`ray start`. `gcs`: where the head listens; None for the head itself."""
    flags = {
        "node-ip-address": address,
        "num-cpus": settings["cpus"],
        "num-gpus": settings["gpus"],
        "labels": f"ray-platform/group={settings['group']}",
    }
    if gcs is None:
        flags |= {"port": settings["port"], "dashboard-host": _HOST, "dashboard-port": settings["dashboardPort"]}
    else:
        flags["address"] = gcs
    flags |= settings["rayStartParams"]
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
    return [*start, *(["--head"] if gcs is None else []), *(f"--{name}={value}" for name, value in flags.items())]


def _gcs_address(head: str, ca: str | None) -> str:
    """Asks the head until it answers. Raises TimeoutError."""
    context = ssl.create_default_context(cadata=ca) if ca else ssl.create_default_context()
    request = urllib.request.Request(head + NODES)  # noqa: S310 (https, by the stack)
    # A workspace that asks for a login redirects to another host, which would get the token with the other headers.
    request.add_unredirected_header("Authorization", f"Bearer {_token()}")
    deadline, shown = time.monotonic() + _LOOK_SECONDS, ""
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310
                return str(json.load(answer)["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = f"the head at {head} does not answer yet: {error}"
            if why != shown:
                print(why, flush=True)
            shown = why
        time.sleep(_PAUSE_SECONDS)
    raise TimeoutError(shown)


def _token() -> str:
    return os.environ["RAY_AUTH_TOKEN"]


class Front:
    """Answers at CDSW_APP_PORT."""

    def __init__(self, dashboard: int | None, gcs: str, serve_path: str, serve_port: int) -> None:
        """`dashboard`: the port of Ray's; None on a worker. `gcs`: where the head's GCS listens. `serve_path`,
        `serve_port`: where what is served is reached from outside, and where the proxy of Ray Serve listens."""
        self._dashboard, self._gcs = dashboard, gcs
        self._serve_path, self._serve_port = serve_path, serve_port

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request, or connects the caller with the dashboard; then closes."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            request, *lines = head.rstrip("\r\n").split("\r\n")
            method, target, _ = request.split(" ", 2)
            headers = {
                name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            path = target.partition("?")[0]
            if self._dashboard is None:
                await _send(writer, 200, {"node": "worker"})
            elif path == self._serve_path or path.startswith(f"{self._serve_path}/"):
                if not _may(headers, serve_key(_token())):
                    await _send(writer, 401, {"error": "the key of Serve is needed: Authorization: Bearer KEY"})
                else:
                    below = target[len(self._serve_path) :]
                    request = request.replace(target, below if below.startswith("/") else f"/{below}", 1)
                    await self._hand_over(reader, writer, request, lines, "upgrade" in headers, self._serve_port)
            elif path in (NODES, DRAIN):
                if not _may(headers):
                    await _send(writer, 401, {"error": "Ray's token is needed: Authorization: Bearer TOKEN"})
                else:
                    body = await reader.readexactly(min(int(headers.get("content-length") or 0), _LONGEST_BODY))
                    desired = json.loads(body or b"{}") if method == "POST" and path == DRAIN else {}
                    await _send(writer, *await self._of_ray(desired.get("drain") or {}))
            else:
                await self._hand_over(reader, writer, request, lines, "upgrade" in headers, self._dashboard)
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def _of_ray(self, drain: dict[str, float | None]) -> tuple[int, dict[str, Any]]:
        try:
            loop = asyncio.get_running_loop()
            found = await asyncio.wait_for(loop.run_in_executor(None, drained, self._gcs, drain), 50)
        except Exception as error:
            return 503, {"error": f"Ray does not answer yet ({type(error).__name__})"}
        return 200, {"address": self._gcs, **found}

    async def _hand_over(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: str,
        lines: list[str],
        upgrade: bool,
        port: int,
    ) -> None:
        try:
            there, back = await asyncio.open_connection(_HOST, port)
        except OSError:
            what = "nothing is served" if port == self._serve_port else "Ray's dashboard does not answer yet"
            await _send(writer, 503, {"error": what})
            return
        kept = lines if upgrade else [each for each in lines if not each.lower().startswith("connection:")]
        more = [] if upgrade else ["Connection: close"]
        back.write(("\r\n".join([request, *kept, *more]) + "\r\n\r\n").encode("latin-1"))
        copies = [asyncio.ensure_future(_copy(reader, back)), asyncio.ensure_future(_copy(there, writer))]
        # What answers closes after its answer.
        await copies[1]
        copies[0].cancel()
        back.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.CancelledError):
        while data := await source.read(_LIMIT):
            target.write(data)
            await target.drain()


def serve_key(token: str) -> str:
    """The key with which clients use what is served, and nothing else. It follows from Ray's token, and does not show
    it."""
    return hmac.new(token.encode(), b"Ray Serve", hashlib.sha256).hexdigest()


def _may(headers: dict[str, str], *keys: str) -> bool:
    """Whether the caller has Ray's token, or one of these keys."""
    shown = (headers.get("authorization") or headers.get("x-ray-authorization") or "").encode()
    return any(hmac.compare_digest(shown, f"Bearer {each}".encode()) for each in (_token(), *keys))


async def _send(writer: asyncio.StreamWriter, status: int, content: dict[str, Any]) -> None:
    body = json.dumps(content).encode()
    head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()


def drained(address: str, drain: dict[str, float | None]) -> dict[str, Any]:
    """Drains nodes of Ray, and returns the states that all had before.

    `drain`: by the nodes' names, seconds from now, or None. A node without a time is drained only if it is idle; one
    with a time takes no new work, and its Ray ends once it is idle. At that time itself Ray does nothing.
    """
    from ray._raylet import GcsClient  # type: ignore[attr-defined] # missing in Ray's stub
    from ray.autoscaler.v2.sdk import get_cluster_resource_state
    from ray.core.generated.autoscaler_pb2 import (  # type: ignore[attr-defined] # made by protoc
        DrainNodeReason,
        NodeStatus,
    )

    gcs = GcsClient(address=address)
    # Ray takes the name of a node from RAY_CLOUD_INSTANCE_ID.
    nodes = {node.instance_id: node for node in get_cluster_resource_state(gcs).node_states}
    accepted = []
    for name, seconds in drain.items():
        reason = DrainNodeReason.Value(f"DRAIN_NODE_REASON_{'IDLE_TERMINATION' if seconds is None else 'PREEMPTION'}")
        until = 0 if seconds is None else round((time.time() + seconds) * 1000)
        if name in nodes and gcs.drain_node(nodes[name].node_id.hex(), reason, REASON, until)[0]:
            accepted.append(name)
    return {"nodes": {name: NodeStatus.Name(node.status) for name, node in nodes.items()}, "accepted": accepted}


if __name__ == "__main__":
    if os.environ.get(_INSIDE):
        sys.exit(main())
    # Runtimes may run a script in a Jupyter kernel, which has an event loop already and ends with code 0 always.
    _script = str(Path(os.environ.get("HOME", "/home/cdsw")) / os.environ["RAY_PLATFORM_SCRIPT"])
    _without_keys = {name: value for name, value in os.environ.items() if name not in API_KEYS}
    sys.exit(subprocess.call([sys.executable, _script], env={**_without_keys, _INSIDE: "1"}))
