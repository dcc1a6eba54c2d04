"""A tenant that harms the Redis that it shares with others: they are served again soon, and lose nothing."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from components.redis.settings import RedisSettings, client_memory, resources
from tests.gateway.waiting import eventually
from tests.redis.pods import Pod, Pods

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

SETTINGS = RedisSettings(mode="single")

KEY = "RAYa.training.x@KV"

NEIGHBOURS = "RAYa-b.training.x@KV"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Pod]:
    """The node of mode `single`, where no Sentinel looks after it."""
    pods = Pods(tmp_path / "redis", SETTINGS)
    [pod] = pods.pods
    try:
        pod.start()
        eventually("it is ready", lambda: pod.probe("redis"))
        yield pod
    finally:
        pods.stop()


def kept(node: Pod) -> None:
    with node.wire("a-b", "b-1") as neighbour:
        neighbour.must("HSET", NEIGHBOURS, "field", "kept")


def served(node: Pod) -> bool:
    """Whether the neighbour is served, after the kubelet has probed the container and restarted it if it ended."""
    node.probe("redis")
    node.start_ended("redis")
    with node.wire("a-b", "b-1") as neighbour:
        return bool(neighbour.ask("HGET", NEIGHBOURS, "field") == b"kept")


def test_a_script_that_never_ends_is_killed(node: Pod) -> None:
    kept(node)
    with node.wire("a", "a-1") as harmful:
        harmful.send("EVAL", "while true do end", 0)
        eventually("the neighbour is served", lambda: served(node))
        assert "Script killed by user" in str(harmful.answer())


def test_a_script_that_has_written_and_never_ends_restarts_the_server_without_its_write(node: Pod) -> None:
    kept(node)
    with node.wire("a", "a-1") as harmful:
        harmful.send("EVAL", "redis.call('HSET', KEYS[1], 'half', 'done') while true do end", 1, KEY)
        eventually("the server has restarted", lambda: served(node) and node.start_ended("redis"))
    with node.wire("a", "a-1") as wire:
        assert wire.must("HGET", KEY, "half") is None


def test_a_client_that_reads_no_answers_is_disconnected(node: Pod) -> None:
    size, limit = 1 << 20, client_memory(resources(SETTINGS, clusters=1).memory)
    kept(node)
    with node.wire("a", "a-1") as deaf:
        deaf.must("HSET", KEY, "field", "x" * size)
        before = most_used(node)
        for _ in range(2 * limit // size):
            deaf.send("HGET", KEY, "field")
        with pytest.raises(ConnectionError):
            list(iter(deaf.answer, None))
    assert most_used(node) - before < 1.2 * limit
    assert served(node)


def test_clients_that_never_end_their_commands_are_disconnected(node: Pod) -> None:
    limit = client_memory(resources(SETTINGS, clusters=1).memory)
    kept(node)
    before = most_used(node)
    with ExitStack() as opened:
        for _ in range(6):
            harmful = opened.enter_context(node.wire("a", "a-1"))
            with suppress(ConnectionError):
                harmful.raw(b"*3\r\n$4\r\nHGET\r\n$%d\r\n" % limit + b"x" * (limit // 2))
        assert served(node)
        assert most_used(node) - before < 2 * limit


def most_used(node: Pod) -> int:
    """The peak of a node's memory in bytes."""
    info = node.ask("INFO", "memory").decode()
    return int(info.partition("used_memory_peak:")[2].split()[0])
