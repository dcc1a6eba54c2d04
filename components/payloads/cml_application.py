"""Runs in an application of Cloudera ML with the Python of its runtime: starts a node of Ray, head or worker.

Never imported by the stack. It uses the standard library, of Python 3.9 or newer, and Ray. Its settings are JSON in the
variable RAY_PLATFORM (manifests.Node). Ray's token is in RAY_AUTH_TOKEN, where Ray reads it, too.

An application is reached from outside through HTTPS at its subdomain, which ends at CDSW_APP_PORT. There the head
answers, to callers with the token, `GET /ray-platform/nodes` and `POST /ray-platform/drain`. It hands what is below the
path of Serve to the proxy of Ray Serve, for callers with the token or the key of Serve, and everything else to Ray's
dashboard, which asks for the token itself. From the first answer a worker learns where Ray's GCS listens: the address
of the head's pod, which is not known before it runs. A worker answers only that it is one.

Callers with the token or the key of metrics get `GET /ray-platform/targets`, the workers as Prometheus discovers them
through HTTP, and below `/ray-platform/metrics` the metrics of a node, which Ray serves inside its pod alone, or how
many jobs have failed.

The head keeps its jobs, with the ends of their logs, in files of the project, which outlive it.

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
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

NODES, DRAIN = "/ray-platform/nodes", "/ray-platform/drain"
TARGETS, METRICS = "/ray-platform/targets", "/ray-platform/metrics"

HEAD = "head"
"""Group of the head, and its name below METRICS."""

JOBS = "jobs"
"""Name of the metrics of its jobs below METRICS."""

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

FAILED_JOBS = "ray_platform_failed_jobs"
"""Metric: jobs of this head and of those before it that have failed within a day."""

_TEXT = "text/plain; version=0.0.4"
"""Content type of metrics (prometheus.io, Exposition formats); Prometheus 3 refuses those without one."""

_DAY = 24 * 60 * 60

RECORD_SECONDS = 5.0
"""Between two looks at the jobs. What happens in the last ones before a head ends is not recorded."""

_MOST_JOBS, _LONGEST_LOG, _LONGEST_TEXT = 1000, 64 * 1024, 1024
"""Jobs that are kept, the newest; bytes of each log, its end; and characters of each other text."""

_KEPT = (
    *("type", "job_id", "submission_id", "status", "entrypoint", "message", "error_type", "metadata"),
    *("start_time", "end_time", "driver_exit_code"),
)
"""What is kept of a job (ray/dashboard/modules/job/pydantic_models.py: JobDetails): not its runtime environment, whose
variables may be secrets."""


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
    records = Records(f"http://{_HOST}:{dashboard}", _home() / settings["records"]) if head is None else None
    front = Front(dashboard, f"{address}:{settings['port']}", settings["servePath"], settings["servePort"], records)
    server = await asyncio.start_server(front.answer, _HOST, port, limit=_LIMIT)
    async with server:
        gcs = None
        if records:
            threading.Thread(target=records.keep, daemon=True).start()
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


def _home() -> Path:
    """The folder of the project, which all its applications have, and which outlives them."""
    return Path(os.environ.get("HOME", "/home/cdsw"))


class Front:
    """Answers at CDSW_APP_PORT."""

    def __init__(
        self, dashboard: int | None, gcs: str, serve_path: str, serve_port: int, records: Records | None
    ) -> None:
        """`dashboard`: the port of Ray's; None on a worker. `gcs`: where the head's GCS listens. `serve_path`,
        `serve_port`: where what is served is reached from outside, and where the proxy of Ray Serve listens.
        `records`: of the jobs; None on a worker."""
        self._dashboard, self._gcs, self._records = dashboard, gcs, records
        self._serve_path, self._serve = serve_path, (_HOST, serve_port, "nothing is served")

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
                    await self._hand_over(reader, writer, request, lines, "upgrade" in headers, self._serve)
            elif path in (NODES, DRAIN):
                if not _may(headers):
                    await _send(writer, 401, {"error": "Ray's token is needed: Authorization: Bearer TOKEN"})
                else:
                    body = await reader.readexactly(min(int(headers.get("content-length") or 0), _LONGEST_BODY))
                    desired = json.loads(body or b"{}") if method == "POST" and path == DRAIN else {}
                    await _send(writer, *await self._of_ray(desired.get("drain") or {}))
            elif path == TARGETS or path.startswith(f"{METRICS}/"):
                if not _may(headers, metrics_key(_token())):
                    await _send(writer, 401, {"error": "the key of metrics is needed: Authorization: Bearer KEY"})
                else:
                    accepted = [each for each in lines if each.lower().startswith("accept")]
                    await self._metrics(reader, writer, path.removeprefix(f"{METRICS}/"), accepted)
            else:
                there = (_HOST, self._dashboard, "Ray's dashboard does not answer yet")
                await self._hand_over(reader, writer, request, lines, "upgrade" in headers, there)
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

    async def _metrics(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node: str, accepted: list[str]
    ) -> None:
        """Answers with the metrics of a node or of the jobs, or at TARGETS with the workers."""
        if node == JOBS and self._records:
            await _send(writer, 200, f"{FAILED_JOBS} {self._records.failed()}\n")
            return
        try:
            loop = asyncio.get_running_loop()
            found = await asyncio.wait_for(loop.run_in_executor(None, metrics_addresses, self._gcs), 10)
        except Exception as error:
            await _send(writer, 503, {"error": f"Ray does not answer yet ({type(error).__name__})"})
            return
        if node == TARGETS:
            await _send(writer, 200, targets(found))
        elif node not in found:
            await _send(writer, 404, {"error": "Ray has no such node"})
        else:
            there = (*found[node], "the node does not answer")
            lines = [f"Host: {found[node][0]}", *accepted]
            await self._hand_over(reader, writer, "GET /metrics HTTP/1.1", lines, False, there)

    async def _hand_over(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: str,
        lines: list[str],
        upgrade: bool,
        to: tuple[str, int, str],
    ) -> None:
        """`to`: host, port, and the error if nothing listens there."""
        host, port, error = to
        try:
            there, back = await asyncio.wait_for(asyncio.open_connection(host, port), 10)
        except Exception:
            await _send(writer, 503, {"error": error})
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
    return _derived(token, b"Ray Serve")


def metrics_key(token: str) -> str:
    """The key with which Prometheus reads metrics, and does nothing else. It follows from Ray's token as that of Serve
    does."""
    return _derived(token, b"metrics")


def _derived(token: str, use: bytes) -> str:
    return hmac.new(token.encode(), use, hashlib.sha256).hexdigest()


def _may(headers: dict[str, str], *keys: str) -> bool:
    """Whether the caller has Ray's token, or one of these keys."""
    shown = (headers.get("authorization") or headers.get("x-ray-authorization") or "").encode()
    return any(hmac.compare_digest(shown, f"Bearer {each}".encode()) for each in (_token(), *keys))


async def _send(writer: asyncio.StreamWriter, status: int, content: Any) -> None:
    """`content`: metrics as text, or what becomes JSON."""
    text, kind = (content, _TEXT) if isinstance(content, str) else (json.dumps(content), "application/json")
    body = text.encode()
    head = f"HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()


def metrics_addresses(address: str) -> dict[str, tuple[str, int]]:
    """Where the nodes that live serve their metrics, by their names; the head's is HEAD."""
    from ray._raylet import GcsClient  # type: ignore[attr-defined] # missing in Ray's stub
    from ray.core.generated.gcs_pb2 import GcsNodeInfo  # type: ignore[attr-defined] # made by protoc

    nodes = GcsClient(address=address).get_all_node_info(timeout=5, state_filter=GcsNodeInfo.GcsNodeState.ALIVE)
    return {
        HEAD if node.is_head_node else node.instance_id: (node.node_manager_address, node.metrics_export_port)
        for node in nodes.values()
    }


def targets(nodes: Iterable[str]) -> list[dict[str, Any]]:
    """The workers among these nodes, as Prometheus discovers targets through HTTP (prometheus.io, http_sd). Its
    configuration sets their address, which is that of the head."""
    workers = {name: name.rpartition(".")[0] for name in nodes if name != HEAD}
    return [
        {"targets": [name], "labels": labels(f"{METRICS}/{name}", "worker", place.rpartition("-")[0], place)}
        for name, place in sorted(workers.items())
    ]


def labels(path: str, node_type: str, group: str, place: str) -> dict[str, str]:
    """The labels of a target, as a pod of a RayCluster has them. `place`: of its application in the cluster."""
    return {"__metrics_path__": path, "ray_io_node_type": node_type, "ray_io_group": group, "pod": place}


class Records:
    """The jobs of the cluster, in a file of the project: those of this head, and of the heads before it."""

    def __init__(self, dashboard: str, file: Path) -> None:
        """`dashboard`: the URL of Ray's. `file`: of the records; the logs are beside it, in a folder of its name."""
        self._dashboard, self._file = dashboard, file
        self._known: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            self._known = dict(json.loads(file.read_text()))

    def keep(self) -> None:
        """Looks and writes until the program ends."""
        shown = ""
        while True:
            time.sleep(RECORD_SECONDS)
            try:
                self.look()
                shown = ""
            except Exception as error:
                # Before Ray runs, and when the project has no room.
                why = f"jobs are not recorded: {type(error).__name__}: {error}"
                if why != shown:
                    print(why, file=sys.stderr, flush=True)
                shown = why

    def look(self) -> None:
        """Writes what has changed. Raises OSError, ValueError, and what follows from an answer of another form."""
        found = {}
        with self._ask("/api/jobs/") as answer:
            jobs = json.load(answer)
        for job in jobs:
            kept = {key: _short(job.get(key)) for key in _KEPT}
            # One that runs is written once a minute.
            kept["seen"] = None if job.get("end_time") else time.time() // 60 * 60
            found[record_id(kept)] = kept
        known = {**self._known, **found}
        newest = sorted(known, key=lambda each: known[each]["start_time"])[-_MOST_JOBS:]
        known = {each: known[each] for each in newest}
        if known == self._known:
            return
        logs = self._file.with_suffix("")
        logs.mkdir(parents=True, exist_ok=True)
        for each, job in found.items():
            if each in known and job["submission_id"] and job["end_time"] and not (logs / f"{each}.log").exists():
                # The log of a job whose node is gone is lost.
                with contextlib.suppress(OSError, ValueError):
                    (logs / f"{each}.log").write_bytes(self._log(job["submission_id"]))
        for each in self._known.keys() - known.keys():
            with contextlib.suppress(FileNotFoundError):
                (logs / f"{each}.log").unlink()
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(known))
        new.replace(self._file)
        self._known = known

    def failed(self) -> int:
        """How many have failed within a day."""
        since = (time.time() - _DAY) * 1000
        return sum(job["status"] == "FAILED" and (job["end_time"] or 0) > since for job in self._known.values())

    def _log(self, job: str) -> bytes:
        """The end of the log of a job, of a longer one its last whole lines."""
        tail, whole = b"", True
        with self._ask(f"/api/jobs/{quote(job, safe='')}/logs") as answer:
            while chunk := answer.read(_LIMIT):
                whole = whole and len(tail) + len(chunk) <= _LONGEST_LOG
                tail = (tail + chunk)[-_LONGEST_LOG:]
        if not whole:
            # The end of {"logs": "..."}.
            _, _, lines = tail.rpartition(b'"}')[0].partition(b"\\n")
            tail = b'{"logs": "' + lines + b'"}'
        return str(json.loads(tail)["logs"]).encode()

    def _ask(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {_token()}"}
        request = urllib.request.Request(self._dashboard + path, headers=headers)  # noqa: S310 (http, on loopback)
        # The environment may have a proxy for the workspace.
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20)


def _short(value: Any) -> Any:
    """People's code decides what is in a message, and people what is in an entrypoint or the metadata."""
    if isinstance(value, dict):
        return value if len(json.dumps(value)) <= _LONGEST_TEXT else None
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value


def record_id(job: dict[str, Any]) -> str:
    """Of a job among those of all heads, which count their drivers from 1 each. People choose the IDs of jobs that they
    submit, so they are no names of files."""
    text = json.dumps([job.get("submission_id") or job.get("job_id"), job["start_time"]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
    _script = str(_home() / os.environ["RAY_PLATFORM_SCRIPT"])
    _without_keys = {name: value for name, value in os.environ.items() if name not in API_KEYS}
    sys.exit(subprocess.call([sys.executable, _script], env={**_without_keys, _INSIDE: "1"}))
