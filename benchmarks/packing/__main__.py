"""Counts whole free nodes while workers start and end: with Volcano of this project, and with Kubernetes' scheduler.

Both get the same seeded sequence of starts and ends, on eight simulated nodes of eight GPUs. A worker of 8 GPUs can
start only on a free whole node.
"""

import random
import statistics
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from kubernetes import client

from core.nodes import NodePool
from local.plugins import select
from local.rehearsal import Rehearsal
from testbed.gangs import Gangs, settled
from testbed.platform_stack import Stack, rehearsing

NODES = NodePool(pool="a100", count=8, cpu="64", memory="1000Gi", gpus=8)

SIZES = (1, 2, 4)

BUSY = (0.4, 0.6)
"""The share of GPUs in use rises and falls between these bounds."""

NAMESPACE = "packing"


class Workers:
    """Workers of one scheduler."""

    def __init__(self, cluster: Rehearsal, scheduler: str) -> None:
        self._gangs = Gangs(cluster, NAMESPACE)
        self._scheduler = scheduler
        self.there: dict[str, int] = {}

    def come(self, name: str, gpus: int) -> None:
        """Creates a worker, and waits until it is on a node."""
        if self._scheduler == "volcano":
            self._gangs.start(name, pods=1, gpus=gpus)
        else:
            self._gangs.pod(name, 0, gpus, self._scheduler)
        settled(lambda: self._gangs.placed(name))
        self.there[name] = gpus

    def go(self, name: str) -> None:
        """Ends a worker, and waits until its pods are deleted."""
        del self.there[name]
        if self._scheduler == "volcano":
            self._gangs.end(name)
        else:
            self._gangs.end_pods(name)
        settled(lambda: not self._gangs.pods(NAMESPACE, f"gang={name}"))

    def free_nodes(self) -> int:
        """Nodes without any worker."""
        return NODES.count - len({pod["spec"]["nodeName"] for pod in self._gangs.pods(NAMESPACE)})


def free_over_time(workers: Workers, events: int, seed: int) -> list[int]:
    """Whole free nodes after each event, counted from when enough workers run for the first time."""
    seeded = random.Random(seed)  # noqa: S311 -- reproducible numbers
    free: list[int] = []
    total, rising, number = NODES.count * NODES.gpus, True, 0
    while len(free) < events:
        used = sum(workers.there.values()) / total
        rising = used < BUSY[1] if rising else used < BUSY[0]
        if rising:
            workers.come(f"worker-{number}", seeded.choice(SIZES))
            number += 1
        else:
            workers.go(seeded.choice(sorted(workers.there)))
        if free or not rising:
            free.append(workers.free_nodes())
    for name in list(workers.there):
        workers.go(name)
    return free


def main(
    events: Annotated[int, typer.Option(min=1, help="Arrivals and departures that are counted.")] = 150,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 8,
) -> None:
    """Prints the whole free nodes with either scheduler, and the ratio."""
    with tempfile.TemporaryDirectory() as folder, rehearsing(Path(folder) / "run", NODES) as cluster:
        stack = Stack("packing", Path(folder), cluster, select("auto"))
        stack.edit(lambda settings: settings.update(tenants=[], scheduler={"volcano": {}}))
        stack.up()
        namespace = client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE))
        Gangs(cluster).core.create_namespace(namespace)
        mean = {}
        for scheduler in ("default-scheduler", "volcano"):
            free = free_over_time(Workers(cluster, scheduler), events, seed)
            mean[scheduler] = statistics.mean(free)
            print(f"{scheduler}: whole free nodes of {NODES.count}: mean {mean[scheduler]:.2f}, least {min(free)}")
        print(f"volcano / default-scheduler: {mean['volcano'] / mean['default-scheduler']:.2f}")


if __name__ == "__main__":
    typer.run(main)
