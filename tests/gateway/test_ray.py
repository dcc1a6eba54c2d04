"""A real GCS behind the gateway does not notice that Redis has another master; its users only wait longer."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.payloads.redis_gateway.commands import COMMANDS
from local.paths import ROOT
from tests.gateway.nodes import PASSWORD, Nodes
from tests.gateway.process import Gateway
from tests.gateway.ray_head import Head
from tests.gateway.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

CLEANUP = """
import sys
from ray._private.gcs_utils import cleanup_redis_storage
sys.exit(not cleanup_redis_storage("127.0.0.1", int(sys.argv[1]), "", False, sys.argv[2]))
"""
"""The script of KubeRay's cleanup Job (KubeRay 1.6.2: raycluster_controller.go, buildRedisCleanupJob)."""


def work_while(head: Head, happens: Callable[[], None]) -> dict[str, Any]:
    """The report of a driver that works while `happens` runs."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.gateway.ray_load", head.address, "3"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdin
    assert driver.stdout
    try:
        while (line := driver.stdout.readline()) != "begun\n":
            assert line, "the driver has ended"
        happens()
        driver.stdin.close()
        noticed: dict[str, Any] = json.loads([line for line in driver.stdout if line.startswith("{")][-1])
    finally:
        driver.kill()
        driver.wait()
    return noticed


def test_the_gcs_keeps_working_when_two_masters_are_killed(nodes: Nodes, gateway: Gateway, tmp_path: Path) -> None:
    def kill_two_masters() -> None:
        for _ in range(2):
            old = nodes.master
            old.kill()
            gateway.wait_for_master_other_than(old.port)
            old.start()
            nodes.settle()

    with Head(gateway.port, "two-masters", tmp_path / "ray.log") as head:
        noticed = work_while(head, kill_two_masters)
        assert head.gcs.is_running()
    print(noticed)
    assert [noticed[each]["failed"] for each in ("keys", "actors", "detached")] == [[], [], []]
    assert noticed["missing_keys"] == noticed["lost_actors"] == []
    assert noticed["keeper_kept"]
    assert gateway.metric("refused_commands_total") == 0
    assert gateway.metric("lost_writes_total") == 0


def test_rays_cleanup_leaves_nothing_when_the_master_is_killed(nodes: Nodes, gateway: Gateway, tmp_path: Path) -> None:
    with Head(gateway.port, "to-clean-up", tmp_path / "ray.log"):
        assert nodes.master.ask("KEYS", "RAYto-clean-up@*")
    for sentinel in nodes.sentinels[1:]:
        sentinel.kill()
    old = nodes.master
    old.kill()
    cleanup = subprocess.Popen([sys.executable, "-c", CLEANUP, str(gateway.port), "to-clean-up"], cwd=tmp_path)
    eventually("it waits", lambda: gateway.metric("unanswered_commands") >= 1)
    for sentinel in nodes.sentinels[1:]:
        sentinel.start()
    assert cleanup.wait(timeout=60) == 0
    assert nodes.master_after(old).ask("KEYS", "*") == []


def test_the_gateway_knows_all_commands_that_ray_sends(nodes: Nodes, gateway: Gateway, tmp_path: Path) -> None:
    with nodes.master.wire() as wire:
        wire.must("CONFIG", "RESETSTAT")
        with Head(nodes.master.port, "direct", tmp_path / "ray.log", PASSWORD) as head:
            work_while(head, lambda: None)
        stats = wire.must("INFO", "commandstats").decode()
    sent = {line.split(":")[0].removeprefix("cmdstat_").upper().encode() for line in stats.splitlines()[1:]}
    replication_and_tests = {b"REPLCONF", b"AUTH", b"INFO", b"CONFIG|RESETSTAT", b"PUBLISH", b"PING", b"SUBSCRIBE"}
    assert sent - replication_and_tests <= set(COMMANDS)
    assert {b"HSET", b"HSETNX", b"INCRBY", b"HSCAN"} <= sent
