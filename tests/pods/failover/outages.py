"""Other outages of Redis: each has ended when its function returns."""

import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psutil

from testbed.failover.redis import Redis
from testbed.pods.steps import until

LASTS = 15.0
"""Seconds of an outage that only the test ends; the gateway holds writes for 60."""


def no_quorum(redis: Redis) -> None:
    """The master is killed while two of three Sentinels hang: no next master can be elected until they continue."""
    master = redis.master()
    with ExitStack() as hanging:
        for pod in set(redis.pods()) - {master}:
            hanging.enter_context(_hanging(redis.server(pod, "sentinel")))
        with _hanging(redis.server(master)):
            time.sleep(LASTS)


def all_pods(redis: Redis) -> None:
    """All pods are force-deleted; their volumes stay."""
    before = {pod["metadata"]["uid"] for pod in redis.pods().values()}
    redis.delete_by_force(*redis.pods())
    until(lambda: not before & {pod["metadata"]["uid"] for pod in redis.pods().values()}, "the pods are new ones")


def cut_off_master(redis: Redis) -> None:
    """The master is partitioned from the other two nodes, but Ray still reaches it."""
    master, pods = redis.master(), redis.pods()
    others = [pod["status"]["podIP"] for name, pod in pods.items() if name != master]
    inside = ["nsenter", "--target", str(redis.server(master).pid), "--net", "ip", "route"]
    for address in others:
        subprocess.run([*inside, "add", "blackhole", address], check=True)
    try:
        until(partial(_another, redis, master, set(pods) - {master}), "another is the master")
        time.sleep(LASTS)
    finally:
        for address in others:
            subprocess.run([*inside, "delete", "blackhole", address], check=True)


def two_masters(redis: Redis) -> None:
    """The master hangs until another takes over, which then hangs at once."""
    for _ in range(2):
        until(lambda: redis.running_master() != "", "there is a master")
        master = redis.master()
        with _hanging(redis.server(master)):
            until(partial(_another, redis, master), "another is the master")


OUTAGES: dict[str, Callable[[Redis], None]] = {
    "the Sentinels' quorum": no_quorum,
    "all pods, with their volumes kept": all_pods,
    "the network between the master and its replicas": cut_off_master,
    "two masters, one right after the other": two_masters,
}


def _another(redis: Redis, master: str, asked: Collection[str] = ()) -> bool:
    return redis.master(asked) not in ("", master)


@contextmanager
def _hanging(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        process.resume()
