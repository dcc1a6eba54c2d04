"""The server of the probes."""

import socket
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry

from gateway.health import Health, serve
from gateway.settings import Address
from testbed.machine import lacks


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
