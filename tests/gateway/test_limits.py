"""The gateway limits what it holds, in time and in memory, and reports what exceeds the limits."""

import threading
import time
from contextlib import suppress
from pathlib import Path

import hiredis
import pytest

from tests.gateway.conftest import MakeGateway
from tests.gateway.nodes import Nodes
from tests.gateway.process import Gateway
from tests.gateway.waiting import eventually
from tests.gateway.wire import ClosedError, Wire

pytestmark = [pytest.mark.engine, pytest.mark.thorough]


def lose_redis(nodes: Nodes) -> None:
    """Ends all nodes and Sentinels."""
    nodes.stop()


def test_a_command_is_held_no_longer_than_configured_and_then_the_client_can_continue(
    nodes: Nodes, make_gateway: MakeGateway
) -> None:
    gateway = make_gateway(nodes, hold_seconds=1).wait_ready()
    with gateway.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", "v")
        lose_redis(nodes)
        write, read = wire.ask("HSET", "RAYa@KV", "g", "v"), wire.ask("HGET", "RAYa@KV", "f")
        assert str(write).startswith("TRYAGAIN redis-gateway: no answer of a master in 1 s")
        tried = [f":{each.port}" for each in (*nodes.redis, *nodes.sentinels)]
        assert any(each in str(write) for each in tried), write
        assert isinstance(read, hiredis.ReplyError)
        assert gateway.metric("expired_commands_total") == 2
        nodes.start()
        eventually("the client continues", lambda: wire.ask("HGET", "RAYa@KV", "f") == b"v")


def test_the_error_of_an_unanswered_write_reports_that_it_may_have_been_done(
    nodes: Nodes, make_gateway: MakeGateway
) -> None:
    gateway = make_gateway(nodes, hold_seconds=1).wait_ready()
    with gateway.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", "v")
        with nodes.redis[0].paused():
            for sentinel in nodes.sentinels:
                sentinel.kill()
            assert "it may have been done" in str(wire.ask("HSET", "RAYa@KV", "g", "v"))


def test_the_error_of_a_write_without_replicas_reports_that_only_the_master_has_it(
    nodes: Nodes, make_gateway: MakeGateway
) -> None:
    gateway = make_gateway(nodes, hold_seconds=1, wait_seconds=0.2).wait_ready()
    first, second = nodes.redis[1:]
    with gateway.wire() as wire, first.paused(), second.paused():
        answer = wire.ask("HSET", "RAYa@KV", "f", "v")
    assert str(answer).startswith(
        "NOREPLICAS redis-gateway: done on the master, but fewer than 1 replicas had it in 1 s"
    )


def test_a_client_that_sends_too_much_is_slowed_down_and_loses_nothing(nodes: Nodes, make_gateway: MakeGateway) -> None:
    limit = 1 << 20
    gateway = make_gateway(nodes, max_held_bytes=limit).wait_ready()
    with gateway.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", "v")
        nodes.redis[0].kill()
        begun = wire.send_until_full("INCRBY", "RAYa@n" + "x" * (64 << 10), 1)
        held = gateway.metric("held_bytes")
        assert limit < held < limit + (128 << 10)
        wire.send_rest()
        assert [wire.answer() for _ in range(begun)] == list(range(1, begun + 1))


def test_a_client_that_does_not_read_uses_no_memory(nodes: Nodes, make_gateway: MakeGateway) -> None:
    gateway = make_gateway(nodes, max_held_bytes=1 << 20).wait_ready()
    size = 1 << 20
    with gateway.wire() as deaf, gateway.wire() as other:
        deaf.must("HSET", "RAYa@KV", "f", b"x" * size)
        for _ in range(200):
            deaf.send("HGET", "RAYa@KV", "f")
        assert other.must("HLEN", "RAYa@KV") == 1
        eventually("its commands are taken", lambda: gateway.metric("commands_total", command="HGET") == 200)
        assert gateway.memory() < 150 << 20
        assert all(len(deaf.answer()) == size for _ in range(200))


def test_a_client_that_has_ended_its_own_direction_gets_its_answers(nodes: Nodes, gateway: Gateway) -> None:
    with gateway.wire() as wire:
        for _ in range(3):
            wire.send("INCRBY", "RAYa@n", 1)
        wire.end_sending()
        assert [wire.answer() for _ in range(3)] == [1, 2, 3]
        with pytest.raises(ClosedError):
            wire.answer()


def test_a_client_that_has_ended_its_own_direction_and_does_not_read_is_cut_off(nodes: Nodes, gateway: Gateway) -> None:
    size = 32 << 20
    with gateway.wire() as deaf:
        deaf.must("HSET", "RAYa@KV", "f", b"x" * size)
        deaf.send("HGET", "RAYa@KV", "f")
        eventually("the node has sent the answer", lambda: nodes.master.has_answered("hget"))
        deaf.end_sending()
        eventually("its connection is closed", lambda: gateway.connections() == 0)


def test_a_client_that_sends_and_does_not_read_is_slowed_down_before_it_authenticates(
    nodes: Nodes, make_gateway: MakeGateway, tmp_path: Path
) -> None:
    (tmp_path / "passwords").write_text("secret")
    gateway = make_gateway(nodes, client_password_file=tmp_path / "passwords").wait_ready()
    before, count = gateway.memory(), 300_000  # whose answers, 18 MB, are more than the kernel holds

    def flood(deaf: Wire) -> None:
        with suppress(OSError):
            deaf.raw(b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n" * count)

    with gateway.wire() as deaf, gateway.wire("secret") as other:
        deaf.hold_little()
        threading.Thread(target=flood, args=(deaf,), daemon=True).start()
        taken = 0.0
        while taken < (taken := gateway.metric("denied_clients_total")) or not taken:
            time.sleep(1)
        assert gateway.memory() - before < 8 << 20
        assert taken < count
        assert other.must("PING") == b"PONG"
        assert all(str(deaf.answer()).startswith("WRONGPASS") for _ in range(10_000))


def test_no_more_clients_than_configured_are_accepted(nodes: Nodes, make_gateway: MakeGateway) -> None:
    gateway = make_gateway(nodes, max_clients=1).wait_ready()
    with gateway.wire() as first:
        first.must("PING")
        with gateway.wire() as second:
            assert "max number of clients" in str(second.answer())
            with pytest.raises(ClosedError):
                second.answer()
    eventually("the place is free", lambda: gateway.metric("clients") == 0)
    with gateway.wire() as third:
        assert third.must("PING") == b"PONG"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "expected '*', got 'G'"),
        (b"*1\r\n:5\r\n", "expected '$', got ':'"),
        (b"*400000000\r\n", "at most 7001 are taken"),
        (
            b"*2\r\n$4\r\nHGET\r\n$600000000\r\n",
            "an argument has 600000000 bytes; a command may have 536870912 (max_command_bytes)",
        ),
        (b"*1\r\n$-5\r\n", "an argument has -5 bytes"),
        (b"*one\r\n", "not the Redis protocol"),
    ],
)
def test_an_invalid_command_ends_the_connection_with_an_error(
    gateway_of_module: Gateway, text: bytes, message: str
) -> None:
    with gateway_of_module.wire() as wire:
        wire.raw(text)
        assert message in str(wire.answer())
        with pytest.raises(ClosedError):
            wire.answer()
