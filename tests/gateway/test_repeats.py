"""Each command of Ray is done once and answered once, even if its answer is lost and the gateway repeats it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hiredis
import pytest

from components.payloads.redis_gateway import journal
from components.payloads.redis_gateway.commands import COMMANDS
from components.payloads.redis_gateway.settings import JOURNAL_SECONDS
from tests.gateway.cable import Cable
from tests.gateway.nodes import Node
from tests.gateway.process import Gateway
from tests.gateway.waiting import eventually
from tests.gateway.wire import Wire

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

Command = tuple[str | int, ...]


@pytest.fixture(autouse=True)
def empty(node: Node) -> None:
    """Removes the data of other tests."""
    node.ask("FLUSHALL")


@pytest.fixture(scope="module")
def behind(cable: Cable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway at the other end of the cable, configured with the node instead of Sentinels."""
    node = f"127.0.0.1:{cable.port}"
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), redis=node, wait_replicas=0).wait_ready()
    try:
        yield gateway
    finally:
        gateway.kill()


def calls(node: Node, name: str) -> int:
    """The number of times that a node has done a command, including those of scripts."""
    stats = node.ask("INFO", "commandstats").decode()
    line = next((line for line in stats.splitlines() if line.startswith(f"cmdstat_{name.lower()}:")), "calls=0,")
    return int(line.partition("calls=")[2].partition(",")[0])


def ask_and_lose_the_answer(wire: Wire, cable: Cable, node: Node, command: Command) -> Any:
    """The client's answer when the connection breaks after the node has done a command and before it answers."""
    wire.must("PING")
    before = calls(node, str(command[0]))
    cable.mute()
    wire.send(*command)
    eventually("the node has done it", lambda: calls(node, str(command[0])) > before)
    cable.cut()
    return wire.answer()


EXAMPLES: dict[str, tuple[list[Command], Command, Any]] = {
    "HSET of a new field": ([], ("HSET", "RAYa@KV", "f", "v"), 1),
    "HSET of a known field": ([("HSET", "RAYa@KV", "f", "u")], ("HSET", "RAYa@KV", "f", "v"), 0),
    "HSETNX of a new field": ([], ("HSETNX", "RAYa@KV", "f", "v"), 1),
    "HSETNX of a known field": ([("HSET", "RAYa@KV", "f", "v")], ("HSETNX", "RAYa@KV", "f", "v"), 0),
    "HDEL of existing fields": ([("HSET", "RAYa@KV", "f", "v", "g", "v")], ("HDEL", "RAYa@KV", "f", "g", "h"), 2),
    "HDEL of a missing field": ([], ("HDEL", "RAYa@KV", "f"), 0),
    "INCRBY": ([("INCRBY", "RAYa@JobCounter", 3)], ("INCRBY", "RAYa@JobCounter", 1), 4),
    "INCRBY beyond the exact numbers of a script": (
        [("INCRBY", "RAYa@JobCounter", 2**63 - 3)],
        ("INCRBY", "RAYa@JobCounter", 1),
        2**63 - 2,
    ),
    "INCRBY beyond the digits of a script": (
        [("INCRBY", "RAYa@JobCounter", -(10**15))],
        ("INCRBY", "RAYa@JobCounter", -1),
        -(10**15) - 1,
    ),
    "DEL": ([("HSET", "RAYa@KV", "f", "v"), ("HSET", "RAYa@JOB", "f", "v")], ("DEL", "RAYa@KV", "RAYa@JOB"), 2),
    "DEL of Ray's probe": ([], ("DEL", "DUMMY"), 0),
    "UNLINK": ([("HSET", "RAYa@KV", "f", "v")], ("UNLINK", "RAYa@KV"), 1),
    "HGET": ([("HSET", "RAYa@KV", "f", "v")], ("HGET", "RAYa@KV", "f"), b"v"),
    "HGET of a missing field": ([], ("HGET", "RAYa@KV", "f"), None),
    "HMGET": ([("HSET", "RAYa@KV", "f", "v")], ("HMGET", "RAYa@KV", "f", "g"), [b"v", None]),
    "HEXISTS": ([("HSET", "RAYa@KV", "f", "v")], ("HEXISTS", "RAYa@KV", "f"), 1),
    "HGETALL": ([("HSET", "RAYa@KV", "f", "v")], ("HGETALL", "RAYa@KV"), [b"f", b"v"]),
    "HLEN": ([("HSET", "RAYa@KV", "f", "v")], ("HLEN", "RAYa@KV"), 1),
    "EXISTS": ([("HSET", "RAYa@KV", "f", "v")], ("EXISTS", "RAYa@KV", "RAYb@KV"), 1),
    "HSCAN": ([("HSET", "RAYa@KV", "f", "v")], ("HSCAN", "RAYa@KV", 0), [b"0", [b"f", b"v"]]),
    "SCAN": ([("HSET", "RAYa@KV", "f", "v")], ("SCAN", 0, "MATCH", "RAYa@*"), [b"0", [b"RAYa@KV"]]),
    "PING": ([], ("PING",), b"PONG"),
    "INFO of Sentinel, which shows Ray that it is none": ([], ("INFO", "SENTINEL"), b""),
    "INFO of the cluster": ([], ("INFO", "CLUSTER"), b"# Cluster\r\ncluster_enabled:0\r\n"),
}
"""Earlier commands, the command, and its answer when it is done once."""


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_command_whose_answer_was_lost_is_done_and_answered_once(
    behind: Gateway, cable: Cable, node: Node, example: str
) -> None:
    before, command, answer = EXAMPLES[example]
    with behind.wire() as wire:
        for each in before:
            wire.must(*each)
        assert ask_and_lose_the_answer(wire, cable, node, command) == answer
        assert wire.must("PING") == b"PONG"


def test_the_examples_have_all_commands_that_the_gateway_accepts() -> None:
    names = {str(command[0]).encode() for _, command, _ in EXAMPLES.values()}
    assert names == set(COMMANDS) - {b"DBSIZE"}  # which counts the journal too


def test_an_error_of_the_node_reaches_the_client_as_it_is(behind: Gateway, node: Node) -> None:
    node.ask("HSET", "RAYa@KV", "f", "v")
    with behind.wire() as wire:
        assert "WRONGTYPE Operation against a key" in str(wire.ask("INCRBY", "RAYa@KV", 1))


def test_a_redis_without_memory_can_be_emptied_and_is_used_again(
    behind: Gateway, cable: Cable, node: Node, tmp_path: Path
) -> None:
    with behind.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", "v", "g", "v")
        node.ask("CONFIG", "SET", "maxmemory", 1)
        try:
            cable.cut()
            assert str(wire.ask("HSET", "RAYa@KV", "h", "v")).startswith("OOM")
            assert ask_and_lose_the_answer(wire, cable, node, ("HDEL", "RAYa@KV", "f")) == 1
            cleaning = Gateway(tmp_path / "gateway-0", redis=f"127.0.0.1:{node.port}", wait_replicas=0)
            try:
                with cleaning.wait_ready().wire() as cleaner:
                    assert cleaner.must("DEL", "RAYa@KV") == 1
            finally:
                cleaning.kill()
        finally:
            node.ask("CONFIG", "SET", "maxmemory", 0)
        assert wire.must("HSET", "RAYa@KV", "h", "v") == 1


def test_a_large_value_passes_a_slow_connection(cable: Cable, tmp_path: Path) -> None:
    """It takes two seconds each way, more than a node may be silent and more than a command may be held."""
    value = os.urandom(4 << 20)
    address = f"127.0.0.1:{cable.port}"
    gateway = Gateway(
        tmp_path / "gateway-0", redis=address, wait_replicas=0, wait_seconds=0.2, reply_seconds=0.5, hold_seconds=1
    )
    try:
        with gateway.wait_ready().wire() as wire, cable.slow(2 << 20):
            assert wire.must("HSET", "RAYa@KV", "f", value) == 1
            assert wire.must("HGET", "RAYa@KV", "f") == value
    finally:
        gateway.kill()


def test_a_large_value_is_in_memory_once_on_its_way_in_and_twice_on_its_way_out(cable: Cable, tmp_path: Path) -> None:
    """On its way out the connection's buffer has a copy. The gateway has had no other large value: after one, glibc may
    keep the buffers from which the next has grown, up to 32 MiB of them (mallopt(3), M_MMAP_THRESHOLD)."""
    size = 64 << 20
    gateway = Gateway(tmp_path / "gateway-0", redis=f"127.0.0.1:{cable.port}", wait_replicas=0)
    try:
        with gateway.wait_ready().wire() as wire:
            wire.must("HSET", "RAYa@KV", "f", "v")
            before = gateway.memory()
            gateway.forget_peak()
            wire.must("HSET", "RAYa@KV", "f", b"x" * size)
            assert gateway.peak() - before < 1.2 * size
            wire.must("PING")
            gateway.forget_peak()
            assert len(wire.must("HGET", "RAYa@KV", "f")) == size
            assert gateway.peak() - before < 2.2 * size
    finally:
        gateway.kill()


def test_a_large_answer_that_a_client_has_half_read_arrives_whole_although_the_connection_breaks(
    behind: Gateway, cable: Cable, node: Node
) -> None:
    value = os.urandom(24 << 20)
    with behind.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", value)
        wire.send("HGET", "RAYa@KV", "f")
        wire.send("INCRBY", "RAYa@after", 1)
        eventually("the node has sent the answer", lambda: node.has_answered("hget"))
        cable.cut()
        assert (wire.answer() == value, wire.answer()) == (True, 1)


def test_values_are_bytes_of_any_kind_and_size(behind: Gateway, node: Node) -> None:
    value = os.urandom(8 << 20)
    with behind.wire() as wire:
        wire.must("HSET", "RAYa@KV", b"\x00\r\n\xff", value)
        assert wire.must("HGET", "RAYa@KV", b"\x00\r\n\xff") == value


def test_a_command_may_have_as_many_arguments_as_ray_sends(behind: Gateway) -> None:
    fields = [f"f{number}" for number in range(6900)]
    with behind.wire() as wire:
        for start in range(0, 6900, 1000):
            wire.must("HSET", "RAYa@KV", *(part for field in fields[start : start + 1000] for part in (field, "v")))
        assert wire.must("HDEL", "RAYa@KV", *fields) == 6900
        wire.send("HDEL", "RAYa@KV", *(str(number) for number in range(7001)))
        assert "at most 7001" in str(wire.answer())


def test_a_journal_is_removed_when_its_client_disconnects(behind: Gateway, node: Node) -> None:
    with behind.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", "v")
        wire.must("DEL", "RAYa@KV")
        (key,) = node.ask("KEYS", "*")
        assert 0 < node.ask("TTL", key.decode()) <= JOURNAL_SECONDS
    eventually("the journal is removed", lambda: node.ask("DBSIZE") == 0)


def test_a_write_of_an_older_connection_is_refused(node: Node) -> None:
    def write(epoch: int, number: int) -> bytes:
        command = [b"INCRBY", b"RAYa@n", b"1"]
        return b"".join(journal.write(b"redis-gateway:x", epoch, number, command, COMMANDS[b"INCRBY"]))

    with node.wire() as wire:
        wire.raw(write(1, 1))
        wire.raw(journal.opening(b"redis-gateway:x", 2))
        wire.raw(write(1, 2))
        wire.raw(write(2, 2))
        answers = [wire.answer() for _ in range(4)]
    assert journal.done(answers[1]) == {1: 1}
    assert str(answers[2]).startswith(journal.FENCED)
    assert (answers[0], answers[3]) == (1, 2)


def test_a_write_in_the_buffers_of_an_older_connection_is_not_done(behind: Gateway, cable: Cable, node: Node) -> None:
    with behind.wire() as wire:
        wire.must("INCRBY", "RAYa@n", 1)
        with node.paused():
            wire.send("INCRBY", "RAYa@n", 1)
            eventually("it was sent", lambda: behind.metric("unanswered_commands") == 1)
            cable.cut()
        assert wire.answer() == 2
        assert wire.must("INCRBY", "RAYa@n", 1) == 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("SUBSCRIBE", "channel"), "does not take 'SUBSCRIBE'"),
        (("MULTI",), "does not take 'MULTI'"),
        (("BLPOP", "list", 0), "does not take 'BLPOP'"),
        (("EVAL", "return 1", 0), "does not take 'EVAL'"),
        (("FLUSHALL",), "does not take 'FLUSHALL'"),
        (("HGET", "RAYa@KV"), "wrong number of arguments for 'hget'"),
    ],
)
def test_an_unsupported_command_is_refused(behind: Gateway, command: Command, message: str) -> None:
    before = behind.metric("refused_commands_total")
    with behind.wire() as wire:
        answer = wire.ask(*command)
        assert isinstance(answer, hiredis.ReplyError)
        assert message in str(answer)
        assert wire.must("PING") == b"PONG"
    assert behind.metric("refused_commands_total") == before + 1
