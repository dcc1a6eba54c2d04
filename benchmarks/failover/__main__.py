"""Loses masters of Redis under a working Ray, on a real node: first with the gateway, then without it.

Both have the same stack, the same losses and the same driver, which is on a worker, because a head that starts again
takes its own drivers with it. Then RayClusters are removed, and what they leave in Redis is counted.
"""

import itertools
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from tests.pods.failover.day import Day
from tests.pods.failover.driver import working
from tests.pods.failover.redis import KINDS, Redis
from tests.pods.failover.stack import OTHER, fault_tolerant, gateway_counts, started
from tests.pods.platform import NAMESPACE, Platform, brought_up
from tests.pods.steps import Steps


def without_gateway(settings: dict[str, Any]) -> None:
    """The same stack, with heads that speak to Redis themselves."""
    fault_tolerant(settings)
    settings["redis"]["gateway"] = {"enabled": False}


def lose_masters(platform: Platform, losses: int) -> Day:
    """Masters are lost one after the other, in all ways in turn, while Ray works."""
    redis, before = Redis(platform), started(platform)
    with working(platform, on_worker=True) as noticed:
        lost = [redis.lose_master(kind) for kind in itertools.islice(itertools.cycle(KINDS), losses)]
    return Day(lost, noticed, before, started(platform), {})


def tell(title: str, day: Day) -> None:
    """Prints a day."""
    noticed = day.noticed
    failed = {work: len(noticed[work]["failed"]) for work in ("keys", "actors", "detached")}
    print(f"\n{title}\n{day.table()}")
    print(f"restarts before: {day.before}\nrestarts after: {day.after}")
    print(f"calls that failed: {failed}; the actor that was there before kept its state: {noticed['keeper_kept']}")
    print(f"acknowledged and missing: keys {noticed['missing_keys']}, actors {noticed['lost_actors']}", flush=True)


def keys_left(platform: Platform) -> int:
    """Removes the RayCluster, counts its keys in Redis, and makes it anew."""
    clusters: list[Any] = []

    def remove(settings: dict[str, Any]) -> None:
        clusters.extend(settings["tenants"][0].pop("clusters"))

    platform.stack.edit(remove)
    platform.stack.up()
    there = Redis(platform).keys()
    assert [key for key in there if key.startswith(f"RAY{OTHER}.")], "Redis was not asked"
    platform.stack.edit(lambda settings: settings["tenants"][0].update(clusters=clusters))
    platform.stack.up()
    return len([key for key in there if NAMESPACE in key])


def main(
    losses: Annotated[int, typer.Option(min=2, help="Masters to lose with the gateway, and as many without.")] = 100,
    removals: Annotated[int, typer.Option(min=0, help="Times that a RayCluster is removed.")] = 10,
) -> None:
    """Prints each loss with its times, and what was lost."""
    steps = Steps([])
    for title, edit in (("with the gateway", fault_tolerant), ("without the gateway", without_gateway)):
        with (
            tempfile.TemporaryDirectory() as folder,
            brought_up(Path(folder), steps, edit) as platform,
        ):
            day = lose_masters(platform, losses)
            tell(title, day)
            if edit is fault_tolerant:
                lost = gateway_counts(platform)["redis_gateway_lost_writes_total"]
                left = [keys_left(platform) for _ in range(removals)]
                print(
                    f"writes lost, as the gateway counts: {lost:.0f}; keys left by removed RayClusters: {left}",
                    flush=True,
                )


if __name__ == "__main__":
    typer.run(main)
