"""How the gateway starts and ends: as first process of a container, beside a Ray head and in KubeRay's cleanup Job."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from local.control_plane import free_ports
from tests.gateway.conftest import MakeGateway
from tests.gateway.nodes import Nodes
from tests.gateway.process import PAYLOADS, PROGRAM, Gateway
from tests.gateway.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.thorough]


def started(**settings: str) -> "subprocess.CompletedProcess[str]":
    """Runs a gateway that does not start."""
    environment = {f"REDIS_GATEWAY_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, *PROGRAM]
    return subprocess.run(
        command, cwd=PAYLOADS, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_clients_it_ends_at_once(gateway_of_module: Gateway) -> None:
    assert gateway_of_module.stop() == 0


def test_clients_may_finish_but_new_ones_are_refused(nodes: Nodes, gateway: Gateway) -> None:
    with gateway.wire() as wire:
        assert wire.must("INCRBY", "RAYa@n", 1) == 1
        gateway.process.terminate()
        eventually("it reports that it ends", lambda: gateway.get("readyz") == (503, "ending"))
        with pytest.raises(ConnectionRefusedError):
            gateway.wire()
        nodes.master.kill()
        assert wire.must("INCRBY", "RAYa@n", 1) == 2
    assert gateway.process.wait(timeout=30) == 0


@pytest.mark.parametrize("how", ["the time is over", "a second signal comes"])
def test_a_client_that_stays_is_cut_off_when(nodes: Nodes, make_gateway: MakeGateway, how: str) -> None:
    gateway = make_gateway(nodes, drain_seconds=0.3 if how == "the time is over" else 600).wait_ready()
    with gateway.wire() as wire:
        assert wire.must("INCRBY", "RAYa@n", 1) == 1
        gateway.process.terminate()
        if how == "a second signal comes":
            eventually("it reports that it ends", lambda: gateway.get("readyz") == (503, "ending"))
            gateway.process.send_signal(signal.SIGINT)
        with pytest.raises(ConnectionError):
            wire.answer()
    assert gateway.process.wait(timeout=30) == 0
    assert "1 clients are cut off" in gateway.log_text()


def test_it_ends_as_the_first_process_of_a_container(nodes: Nodes, make_gateway: MakeGateway) -> None:
    """The kernel does not deliver signals to a first process without handlers for them."""
    namespace = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
    gateway = make_gateway(nodes, before=namespace).wait_ready()
    (first,) = psutil.Process(gateway.process.pid).children()
    first.terminate()
    assert gateway.process.wait(timeout=30) == 0
    assert gateway.lines()[-1]["message"] == "ended"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "neither of REDIS_GATEWAY_SENTINELS and REDIS_GATEWAY_REDIS is set: set one of them"),
        ({"redis": "redis"}, "REDIS_GATEWAY_REDIS: 'redis' is not HOST:PORT, for example redis-0.redis:6379"),
        ({"redis": "a:1", "wait_replica": "1"}, "REDIS_GATEWAY_WAIT_REPLICA: there is no such setting; there are"),
        (
            {"redis": "a:1", "hold_seconds": "301"},
            "REDIS_GATEWAY_HOLD_SECONDS: '301' is not a number from 0.001 to 300",
        ),
        ({"redis": "a:1", "redis_password_file": "/none"}, "/none cannot be read: No such file or directory"),
        ({"redis": "a:1", "tls_ca_file": __file__}, "NO_CERTIFICATE_OR_CRL_FOUND"),
    ],
)
def test_an_invalid_setting_is_reported_in_one_line(settings: dict[str, str], message: str) -> None:
    ended = started(**settings)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_reported(gateway_of_module: Gateway, nodes: Nodes) -> None:
    taken = f"127.0.0.1:{nodes.redis[0].port}"
    ended = started(redis="a:1", listen=taken, http_listen=f"127.0.0.1:{next(free_ports())}")
    assert ended.returncode == 1
    assert "cannot serve" in ended.stderr
    assert "Traceback" not in ended.stderr
