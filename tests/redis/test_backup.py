"""Copies of the data, and their restoration, with the CronJobs' own containers."""

from pathlib import Path
from typing import Any

import pytest

from components.redis.connection import BACKUP, RESTORE
from components.redis.manifests import backup_objects
from components.redis.settings import RedisBackupSettings, RedisSettings
from tests.redis.pods import Pods

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

KEEP = 2


def container(name: str) -> dict[str, Any]:
    bodies = backup_objects(RedisSettings(), RedisBackupSettings(keep=KEEP), "ray-system", clusters=1)
    job = next(body for body in bodies if body["kind"] == "CronJob" and body["metadata"]["name"] == name)
    found: dict[str, Any] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    return found


def keys(redis: Pods) -> dict[str, bytes]:
    with redis.master.wire("a", "a-1") as wire:
        return {table: wire.must("HGET", f"RAYa.training.x@{table}", "field") for table in ("JOB", "ACTOR")}


def put(redis: Pods, **tables: str) -> None:
    with redis.master.wire("a", "a-1") as wire:
        for table, value in tables.items():
            wire.must("HSET", f"RAYa.training.x@{table}", "field", value)
        assert wire.must("WAIT", 2, 5000) == 2


def test_lost_data_are_restored_from_a_copy(redis: Pods) -> None:
    put(redis, JOB="1", ACTOR="1")
    made = redis.pods[1].run(container(BACKUP))
    assert made.returncode == 0, made.stdout
    put(redis, JOB="2", NODE="2")
    redis.master.ask("DEL", "RAYa.training.x@ACTOR")
    restored = redis.pods[1].run(container(RESTORE))
    assert restored.returncode == 0, restored.stdout
    assert "restored 2 keys" in restored.stdout
    assert keys(redis) == {"JOB": b"1", "ACTOR": b"1"}
    assert redis.master.ask("HGET", "RAYa.training.x@NODE", "field") == b"2"


def test_the_newest_copies_are_kept(redis: Pods, tmp_path: Path) -> None:
    folder = tmp_path / "redis" / "backup"
    for day in (1, 2, 3):
        (folder / f"2026-01-0{day}T00-00-00Z.rdb").write_text("")
    assert redis.pods[0].run(container(BACKUP)).returncode == 0
    left = sorted(file.name for file in folder.iterdir())
    assert left[0] == "2026-01-03T00-00-00Z.rdb"
    assert len(left) == KEEP


def test_what_failed_backups_have_left_is_deleted(redis: Pods, tmp_path: Path) -> None:
    folder = tmp_path / "redis" / "backup"
    (folder / "2026-01-01T00-00-00Z.rdb.part").write_text("half")
    assert redis.pods[0].run(container(BACKUP)).returncode == 0
    assert [file.suffix for file in folder.iterdir()] == [".rdb"]


def test_a_missing_copy_is_reported(redis: Pods) -> None:
    made = redis.pods[0].run(container(RESTORE), RESTORE="gone.rdb")
    assert made.returncode == 1
    assert "there is no copy" in made.stdout
