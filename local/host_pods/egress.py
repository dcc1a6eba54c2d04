"""Lets the API server reach the Services of programs on the host, for example to call their webhooks.

There is no kube-proxy, so the address of a Service is not reachable. Kubernetes supports API servers outside the
network of the pods, and Konnectivity uses that: an EgressSelectorConfiguration sends each connection to the cluster
through a proxy. This proxy receives `CONNECT <clusterIP>:<port>` on a Unix socket, and connects to the port of loopback
where the program behind that Service listens.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import yaml

from local import paths

Route = Callable[[str, int], int | None]
"""The port of loopback where the program behind an address and port of a Service listens; None if there is none."""

STARTS_SECONDS = 30.0
"""Seconds that a new program may take until it listens; the API server waits no longer for a webhook. A pod on a
simulated node is Ready at once; on a real node its readiness probe would delay that."""


def socket(run: Path) -> Path:
    """The socket of a rehearsal's proxy."""
    return paths.socket(run, "egress")


def configuration(run: Path) -> Path:
    """The file that configures the API server to use it."""
    return run / "egress.yaml"


def write_configuration(run: Path) -> None:
    """Writes that file (kubernetes.io, "Set up Konnectivity service")."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(socket(run))}}}
    configuration(run).write_text(
        yaml.safe_dump(
            {
                "apiVersion": "apiserver.k8s.io/v1beta1",
                "kind": "EgressSelectorConfiguration",
                "egressSelections": [{"name": "cluster", "connection": connection}],
            }
        )
    )


def serve(listen: Path, route: Route) -> None:
    """Serves connections in a separate thread, as long as the process runs."""
    threading.Thread(target=lambda: asyncio.run(_serve(listen, route)), daemon=True).start()


async def _serve(listen: Path, route: Route) -> None:
    listen.unlink(missing_ok=True)

    async def each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError), contextlib.closing(writer):
            await _connect(reader, writer, route)

    server = await asyncio.start_unix_server(each, listen)
    listen.chmod(0o600)
    await server.serve_forever()


async def _connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, route: Route) -> None:
    request = await reader.readuntil(b"\r\n\r\n")
    address, _, port = request.split(b" ")[1].decode().rpartition(":")
    port_of_loopback = await asyncio.to_thread(route, address, int(port))
    upstream = await _open(port_of_loopback) if port_of_loopback else None
    if upstream is None:
        writer.write(b"HTTP/1.1 503 no program behind this Service listens\r\n\r\n")
        await writer.drain()
        return
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    with contextlib.closing(upstream[1]):
        ways = [asyncio.create_task(_pass_on(reader, upstream[1])), asyncio.create_task(_pass_on(upstream[0], writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()


async def _open(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    deadline = asyncio.get_running_loop().time() + STARTS_SECONDS
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if asyncio.get_running_loop().time() > deadline:
                return None
            await asyncio.sleep(0.1)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
