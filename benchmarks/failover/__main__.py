"""Loses masters of Redis while Ray works, on a real node: first with the gateway, then without it.

Both have the same losses and the same driver. The driver runs on a worker, because a restart of the head ends its own
drivers. After that the benchmark removes RayClusters, and counts the keys that they leave in Redis.
"""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from testbed.failover.day import Day
from testbed.failover.driver import working
from testbed.failover.redis import KINDS, Redis
from testbed.failover.stack import OTHER, fault_tolerant, gateway_counts, started
from testbed.platform_stack import Edit
from testbed.pods.node import is_ready
from testbed.pods.platform import NAMESPACE, Platform, brought_up
from testbed.pods.steps import Steps, until


def without_gateway(settings: dict[str, Any]) -> None:
    """The same stack, with a head that connects to Redis directly.

    It omits the second RayCluster: its head would restart too, and take half of a small machine from the measured one.
    """
    fault_tolerant(settings)
    settings["tenants"] = [tenant for tenant in settings["tenants"] if tenant["name"] != OTHER]
    settings["redis"]["gateway"] = False


def lose_masters(platform: Platform, losses: int) -> Day:
    """Loses masters one after the other, in all ways in turn, while Ray works. Stops if Ray does not recover from a
    loss.
    """
    redis, before = Redis(platform), started(platform)
    with working(platform, on_worker=True) as noticed:
        lost = []
        for kind in itertools.islice(itertools.cycle(KINDS), losses):
            try:
                until(lambda: ray_is_whole(platform), "Ray is whole", seconds=600, pause=3)
            except AssertionError as reason:
                print(f"given up: {reason}", flush=True)
                break
            lost.append(redis.lose_master(kind))
            print(f"lost by {kind}, whole again after {lost[-1].whole:.1f} s", flush=True)
    return Day(lost, noticed, before, started(platform), {})


def ray_is_whole(platform: Platform) -> bool:
    """Whether the head and the worker are ready, so that the next loss does not add to the cost of this one."""
    try:
        pods = platform.pods("ray.io/cluster", NAMESPACE)
    except AssertionError:  # the API server is too slow to answer, for example while a head starts
        return False
    return len(pods) == 2 and all(map(is_ready, pods.values()))


def print_day(title: str, day: Day) -> None:
    """Prints the results of a day."""
    noticed = day.noticed
    failed = {work: len(noticed[work]["failed"]) for work in ("keys", "actors", "detached")}
    print(f"\n{title}\n{day.table()}")
    print(f"restarts before: {day.before}\nrestarts after: {day.after}")
    print(f"calls that failed: {failed}; the earlier actor kept its state: {noticed['keeper_kept']}")
    print(f"acknowledged and missing: keys {noticed['missing_keys']}, actors {noticed['lost_actors']}", flush=True)


def keys_left(platform: Platform) -> int:
    """Removes the RayCluster, counts its keys in Redis, and recreates it."""
    clusters: list[Any] = []

    def remove(settings: dict[str, Any]) -> None:
        clusters.extend(settings["tenants"][0].pop("clusters"))

    platform.stack.edit(remove)
    platform.stack.up()
    keys = Redis(platform).keys()
    assert [key for key in keys if key.startswith(f"RAY{OTHER}.")], "Redis was not asked"
    platform.stack.edit(lambda settings: settings["tenants"][0].update(clusters=clusters))
    platform.stack.up()
    return len([key for key in keys if NAMESPACE in key])


def main(
    losses: Annotated[int, typer.Option(min=0, help="Masters to lose with the gateway.")] = 100,
    without: Annotated[int, typer.Option(min=0, help="Masters to lose without it.")] = 100,
    removals: Annotated[int, typer.Option(min=0, help="Times that a RayCluster is removed.")] = 10,
) -> None:
    """Prints each loss with its times, and what was lost."""
    if losses or removals:
        with _platform(fault_tolerant) as platform:
            if losses:
                print_day("with the gateway", lose_masters(platform, losses))
            lost = gateway_counts(platform)["redis_gateway_lost_writes_total"]
            left = [keys_left(platform) for _ in range(removals)]
            print(
                f"writes lost, as the gateway counts: {lost:.0f}; keys left by removed RayClusters: {left}", flush=True
            )
    if without:
        with _platform(without_gateway) as platform:
            print_day("without the gateway", lose_masters(platform, without))


@contextmanager
def _platform(edit: Edit) -> Iterator[Platform]:
    with tempfile.TemporaryDirectory() as folder, brought_up(Path(folder), Steps([]), edit) as platform:
        yield platform


if __name__ == "__main__":
    typer.run(main)
