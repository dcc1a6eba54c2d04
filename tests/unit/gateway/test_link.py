"""A connection whose peer does not answer, and the server of the probes."""

import asyncio
import errno
import os
import socket
from http.client import HTTPConnection
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from gateway.health import Health, serve
from gateway.link import Link, LostError, SilentError
from gateway.settings import Address
from testbed.machine import lacks


async def answered(within: float | None, error: OSError | None) -> None:
    reader = asyncio.StreamReader()
    if error:
        reader.set_exception(error)
    await Link(Address("sentinel", 26379), reader, cast(Any, None)).answer(within)


@pytest.mark.parametrize("within", [None, 1])
def test_a_connection_whose_keepalive_ends_is_lost(within: float | None) -> None:
    """Python makes a TimeoutError of ETIMEDOUT, as of a limit of its own."""
    error = OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    assert isinstance(error, TimeoutError)
    with pytest.raises(LostError, match=r"sentinel:26379: .*timed out") as lost:
        asyncio.run(answered(within, error))
    assert not isinstance(lost.value, SilentError)


def test_a_connection_without_an_answer_in_time_is_silent() -> None:
    with pytest.raises(SilentError, match=r"sentinel:26379 was silent for 0.01 s"):
        asyncio.run(answered(0.01, None))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_listens_on_addresses_of_both_families(host: str) -> None:
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        lacks(f"an address {host}: enable IPv6 for loopback")
    server = serve(Address(host, 0), Health(reason=None), CollectorRegistry())
    try:
        client = HTTPConnection(host, server.server_port, timeout=10)
        client.request("GET", "/readyz")
        assert client.getresponse().status == 200
        client.close()
    finally:
        server.shutdown()
        server.server_close()
