"""Failures that a Redis of three nodes survives without losing data."""

import fcntl

import pytest

from components.redis.connection import REDIS_PORT, SENTINEL_PORT
from components.redis.pods import STOP_SECONDS
from tests.gateway.waiting import eventually
from tests.redis.pods import Pod, Pods

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

KEY = "RAYa.training.x@KV"


SCRIPT = "redis.call('HSET', KEYS[1], 'field', ARGV[1]) redis.call('HSET', KEYS[1], 'note', 'done') return 1"


def write(pod: Pod, value: str, replicas: int = 2) -> None:
    """A write that this number of replicas have, in a script with a second write, as the gateway sends it."""
    with pod.wire("a", "a-1") as wire:
        wire.must("EVAL", SCRIPT, 1, KEY, value)
        assert wire.must("WAIT", replicas, 5000) == replicas


def read(pod: Pod) -> bytes | None:
    with pod.wire("a", "a-1") as wire:
        value: bytes | None = wire.must("HGET", KEY, "field")
        return value


def test_at_first_the_first_node_is_the_master_and_all_are_ready(redis: Pods) -> None:
    assert redis.master is redis.pods[0]
    assert all(pod.probe(name) for pod in redis.pods for name in ("redis", "sentinel"))
    for pod in redis.pods:
        assert int(pod.ask("SENTINEL", "CKQUORUM", "mymaster", port=SENTINEL_PORT).split()[1]) == 3


def test_a_lost_master_is_replaced_and_comes_back_as_a_replica(redis: Pods) -> None:
    first = redis.master
    write(first, "before")
    first.delete()
    second = redis.wait_for_master_other_than(first)
    assert read(second) == b"before"
    first.start()
    redis.wait_ready()
    assert redis.master is second
    assert read(first) == b"before"


def test_a_master_that_restarts_before_a_failover_waits_for_another(redis: Pods) -> None:
    """It would be the master for a moment, and replicas that follow it then learn of the new one ten seconds later."""
    first = redis.master
    write(first, "before")
    first.kill("redis")
    first.start_container("redis")
    second = redis.wait_for_master_other_than(first)
    eventually("another follows it", lambda: len(second.ask("ROLE")[2]) >= 1)
    write(second, "after", replicas=1)
    redis.wait_ready()
    assert [read(pod) for pod in redis.pods] == [b"after"] * 3


def test_a_master_whose_replicas_were_lost_too_is_the_master_again(redis: Pods) -> None:
    first = redis.master
    write(first, "kept")
    for pod in redis.pods:
        pod.kill("redis")
    first.start_container("redis")
    eventually("it is the master again", lambda: first.ask("ROLE")[0] == b"master")
    assert redis.master is first
    for pod in redis.pods[1:]:
        pod.start_container("redis")
    redis.wait_ready()
    assert [read(pod) for pod in redis.pods] == [b"kept"] * 3
    assert "CRITICAL" not in first.log("redis")


def test_a_master_that_comes_back_empty_does_not_wipe_its_replicas(redis: Pods) -> None:
    first = redis.master
    write(first, "kept")
    first.kill("redis")
    first.lose_data()
    first.start_container("redis")
    second = redis.wait_for_master_other_than(first)
    redis.wait_ready()
    assert "waiting" in first.log("redis")
    assert read(second) == read(first) == b"kept"


def test_one_server_at_a_time_uses_a_volume(redis: Pods) -> None:
    """A pod that is deleted by force keeps running for a while beside its successor."""
    pod = next(pod for pod in redis.pods if pod is not redis.master)
    with (pod.data / "lock").open("w") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pod.delete()
        fcntl.flock(lock, fcntl.LOCK_EX)
        pod.start()
        eventually("it waits", lambda: "another server has the data" in pod.log("redis"))
    redis.wait_ready()


def test_after_all_were_lost_the_last_master_is_the_master_again(redis: Pods) -> None:
    """Not the first node: it was down when the last was written."""
    first = redis.master
    write(first, "old")
    first.delete()
    second = redis.wait_for_master_other_than(first)
    eventually("the third follows", lambda: len(second.ask("ROLE")[2]) == 1)
    write(second, "new", replicas=1)
    eventually(
        "all have stored the master",
        lambda: all(pod is first or remembered(pod) == second.address for pod in redis.pods),
    )
    redis.stop()
    redis.start()
    assert redis.master is second
    assert read(first) == b"new"


def has_it_on_disk(pod: Pod) -> bool:
    """A replica that received all data at once rewrites its file, and has the old one until then."""
    info = pod.ask("INFO", "persistence").decode()
    return "aof_rewrite_in_progress:0" in info and "aof_rewrite_scheduled:0" in info


def remembered(pod: Pod) -> str:
    file = pod.data / "master"
    return file.read_text().split()[1] if file.exists() else ""


def test_after_all_were_lost_and_the_masters_volume_too_the_replicas_data_are_kept(redis: Pods) -> None:
    first = redis.master
    write(first, "kept")
    eventually("all have stored the master", lambda: all(remembered(pod) for pod in redis.pods))
    eventually("all have it on disk", lambda: all(has_it_on_disk(pod) for pod in redis.pods))
    redis.stop()
    first.lose_data()
    redis.start()
    assert redis.master is not first
    assert read(first) == b"kept"


def test_one_node_alone_refuses_writes_and_two_accept_them(redis: Pods) -> None:
    """A partitioned master would accept writes that no other node has."""
    first = redis.master
    write(first, "before")
    others = [pod for pod in redis.pods if pod is not first]
    for pod in others:
        pod.delete()

    def refused() -> bool:
        with first.wire("a", "a-1") as wire:
            return str(wire.ask("HSET", KEY, "field", "lost")).startswith("NOREPLICAS")

    eventually("it refuses writes", refused)
    others[0].start()
    eventually("it accepts writes", lambda: not refused())


def test_a_replica_follows_a_master_that_no_sentinel_has_reported_to_it(redis: Pods) -> None:
    """Like a replica whose pod is so new that the Sentinels still use its old address."""
    master, replica, _ = redis.pods
    replica.ask("REPLICAOF", f"{replica.address}9", REDIS_PORT)
    redis.wait_ready()
    write(master, "kept")
    assert f"following {master.address}" in replica.log("redis")


@pytest.mark.parametrize("grace", [STOP_SECONDS, 2], ids=["in order", "by force"])
def test_a_master_that_is_deleted_hands_over_first(redis: Pods, grace: float) -> None:
    """Sooner than the Sentinels would notice its loss."""
    first = redis.master
    write(first, "kept")
    first.terminate(grace)
    others = [pod for pod in redis.pods if pod is not first]
    roles = eventually("the others answer", lambda: {pod: pod.ask("ROLE")[0] for pod in others})
    [second] = [pod for pod, role in roles.items() if role == b"master"]
    assert read(second) == b"kept"


def test_a_master_that_reaches_no_other_node_still_ends(redis: Pods) -> None:
    first, *others = redis.pods
    for pod in others:
        pod.kill("sentinel")
    first.terminate()
    assert "no other node became the master" in first.log("redis")


def test_a_replica_without_its_master_is_alive_but_not_ready(redis: Pods) -> None:
    replica = redis.pods[2]
    for pod in redis.pods[:2]:
        pod.delete()
    eventually("it is not ready", lambda: not replica.probe("redis"))
    assert replica.probe("redis", "livenessProbe")
    assert replica.probe("sentinel")
    replica.kill("redis")
    assert not replica.probe("redis", "livenessProbe")
