"""When Redis loses its master, clients of the gateway only notice that an answer takes longer."""

import time

import pytest

from tests.gateway.conftest import MakeGateway
from tests.gateway.load import Load
from tests.gateway.nodes import MASTER, Node, Nodes
from tests.gateway.process import Gateway
from tests.gateway.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.thorough]


def assert_has_all(node: Node, load: Load) -> None:
    """Waits until a node has exactly the acknowledged values: the gateway may still be repairing it."""
    acknowledged = {counter.key: counter.counted for counter in load.counters}
    eventually(f"{acknowledged}", lambda: {key: int(node.ask("GET", key) or 0) for key in acknowledged} == acknowledged)


def test_a_killed_master_loses_no_write_no_connection_and_no_order(nodes: Nodes, gateway: Gateway) -> None:
    with Load(gateway) as load:
        old = nodes.master
        old.kill()
        load.advance()
    assert_has_all(nodes.master_after(old), load)
    assert gateway.metric("clients") == len(load.counters)
    assert gateway.metric("held_seconds_count") == len(load.counters)
    assert gateway.metric("expired_commands_total") == 0


def test_two_failovers_within_half_a_minute_lose_nothing(nodes: Nodes, gateway: Gateway) -> None:
    begin = time.monotonic()
    with Load(gateway) as load:
        for _ in range(2):
            old = nodes.master
            old.kill()
            load.advance()
            nodes.master_after(old)
            old.start()
            nodes.settle()
    print(f"two failovers in {time.monotonic() - begin:.1f} s")
    assert_has_all(nodes.master, load)


@pytest.mark.parametrize("writes", ["continue", "are paused before"])
def test_a_planned_failover_loses_nothing(nodes: Nodes, gateway: Gateway, writes: str) -> None:
    # The old master accepts writes for a second or two that the new one misses: at most as many as the gateway keeps.
    with Load(gateway, pause=0.001) as load:
        old = nodes.master
        if writes == "are paused before":
            old.ask("CLIENT", "PAUSE", 5000, "WRITE")
        nodes.sentinels[0].ask("SENTINEL", "FAILOVER", MASTER)
        gateway.wait_for_master_other_than(old.port)
        load.advance()
    assert_has_all(nodes.master, load)
    repaired = gateway.metric("repaired_writes_total")
    print(f"acknowledged writes that the new master missed, when writes {writes}: {repaired:g}")
    if writes == "are paused before":
        assert repaired == 0


def test_the_gateway_leaves_a_hanging_master_when_another_is_elected(nodes: Nodes, gateway: Gateway) -> None:
    with Load(gateway) as load:
        old = nodes.master
        with old.paused():
            nodes.master_after(old)
            load.advance()
        nodes.settle()
        load.advance()
    assert_has_all(nodes.master, load)
    assert_has_all(old, load)


def test_a_master_that_comes_back_as_a_replica_is_not_written_to(nodes: Nodes, gateway: Gateway) -> None:
    with Load(gateway) as load:
        old = nodes.master
        old.kill()
        new = nodes.master_after(old)
        old.start()  # a master by its own file, until a Sentinel reconfigures it
        load.advance()
        nodes.settle()
    assert_has_all(new, load)
    assert nodes.master is new


def test_commands_are_held_while_sentinels_cannot_agree(nodes: Nodes, gateway: Gateway) -> None:
    with Load(gateway) as load:
        for sentinel in nodes.sentinels[1:]:
            sentinel.kill()
        old = nodes.master
        old.kill()
        eventually("commands wait", lambda: gateway.metric("unanswered_commands") >= len(load.counters))
        for sentinel in nodes.sentinels[1:]:
            sentinel.start()
        load.advance()
    assert_has_all(nodes.master_after(old), load)


def test_a_lost_connection_is_opened_again_while_no_sentinel_answers(nodes: Nodes, gateway: Gateway) -> None:
    with Load(gateway) as load:
        for sentinel in nodes.sentinels:
            sentinel.kill()
        (master,) = (node for node in nodes.redis if node.ask("ROLE")[0] == b"master")
        master.ask("CLIENT", "KILL", "TYPE", "normal")
        load.advance()
    assert_has_all(master, load)


def test_a_sentinel_that_missed_a_failover_is_not_believed(nodes: Nodes, gateway: Gateway) -> None:
    stale, *others = nodes.sentinels
    with Load(gateway) as load:
        stale.kill()
        old = nodes.redis[0]
        old.kill()
        load.advance()
        for sentinel in others:
            sentinel.kill()
        old.start()  # a master, which the only running Sentinel still reports
        stale.start()
        assert master_of(stale) == old.port
        (new,) = (node for node in nodes.redis if node.port == int(gateway_master(gateway)))
        new.ask("CLIENT", "KILL", "TYPE", "normal")
        eventually("the gateway rejects it", lambda: "missed the last failover" in gateway.log_text())
        assert old.ask("CLIENT", "LIST").count(b"user=gateway") == 0
        for sentinel in others:
            sentinel.start()
        load.advance()
    assert_has_all(new, load)


def test_an_acknowledged_write_that_no_replica_had_is_repeated(nodes: Nodes, make_gateway: MakeGateway) -> None:
    gateway = make_gateway(nodes, wait_replicas=0).wait_ready()
    old = nodes.master
    first, second = (node for node in nodes.redis if node is not old)
    with gateway.wire() as wire:
        wire.must("HSET", "RAYa@KV", "early", "v")
        nodes_have(nodes, "early")
        first.kill()
        second.kill()
        assert wire.must("HSETNX", "RAYa@KV", "late", "v") == 1
        old.kill()
        first.start()
        second.start()
        assert wire.must("HGET", "RAYa@KV", "late") == b"v"
        assert gateway.metric("repaired_writes_total") == 1
        assert nodes.master_after(old).ask("HGET", "RAYa@KV", "late") == b"v"


def nodes_have(nodes: Nodes, field: str) -> None:
    """Waits until a field is on all nodes and in their files.

    Redis answers before it writes to its file while an fsync is slow, and a node that is killed then forgets the field.
    """

    def has(node: Node) -> bool:
        arrived = node.ask("HEXISTS", "RAYa@KV", field) == 1
        return arrived and b"aof_buffer_length:0\r" in node.ask("INFO", "persistence")

    eventually(f"{field} is everywhere", lambda: all(has(node) for node in nodes.redis))


def master_of(sentinel: Node) -> int:
    """The port of the master that a Sentinel reports."""
    return int(sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)[1])


def gateway_master(gateway: Gateway) -> str:
    """The port of the master that the gateway reported last."""
    messages = [line["message"] for line in gateway.lines() if line["message"].startswith("the master is")]
    return str(messages[-1].rpartition(":")[2])


def test_a_write_is_acknowledged_when_a_replica_has_it(nodes: Nodes, gateway: Gateway) -> None:
    first, second = (node for node in nodes.redis if node is not nodes.master)
    with gateway.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", "v")
        with first.paused(), second.paused():
            wire.send("HSET", "RAYa@KV", "g", "v")
            eventually("the replicas are late", lambda: gateway.metric("late_waits_total") >= 1)
            assert gateway.metric("unanswered_commands") == 1
            assert nodes.master.ask("HGET", "RAYa@KV", "g") == b"v"
        assert wire.answer() == 1


def test_a_write_is_acknowledged_without_replicas_if_configured(nodes: Nodes, make_gateway: MakeGateway) -> None:
    gateway = make_gateway(nodes, unreplicated="answer", wait_seconds=0.2).wait_ready()
    first, second = (node for node in nodes.redis if node is not nodes.master)
    with gateway.wire() as wire:
        wire.must("HSET", "RAYa@KV", "f", "v")
        with first.paused(), second.paused():
            assert wire.must("HSET", "RAYa@KV", "g", "v") == 1
        assert gateway.metric("late_waits_total") == 1


@pytest.mark.parametrize("command", ["SCAN", "HSCAN"])
def test_a_scan_that_continues_on_another_master_misses_nothing(nodes: Nodes, gateway: Gateway, command: str) -> None:
    old = nodes.master
    with gateway.wire() as wire:
        expected = set()
        for number in range(3000):
            name = f"RAYa@{number}"
            wire.send("HSET", *(("RAYa@KV", name, "v") if command == "HSCAN" else (name, "f", "v")))
            expected.add(name.encode())
        for _ in range(3000):
            assert wire.answer() == 1
        key = ("RAYa@KV",) if command == "HSCAN" else ()
        found: set[bytes] = set()
        cursor, steps = b"0", 0
        while steps == 0 or cursor != b"0":
            cursor, page = wire.must(command, *key, cursor, "MATCH", "RAYa@*", "COUNT", 500)
            found.update(page[::2] if command == "HSCAN" else page)
            steps += 1
            if steps == 2:
                old.kill()
    assert found == expected
    assert gateway.metric("restarted_scans_total") == 1
