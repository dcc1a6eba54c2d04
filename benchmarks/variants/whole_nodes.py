"""GPU-hours of whole nodes, which open for pods and close after the last pod ends."""

from collections.abc import Iterable

from benchmarks.variants.clusters import NODE
from stacks.commands.plan.history.replay import Worker

GPUS = int(str(NODE["gpus"]))


def held_by_nodes(workers: Iterable[Worker], *, packed: bool) -> float:
    """GPU-seconds of open nodes.

    A pod runs on an open node with room: the fullest one with `packed` (Volcano's binpack), otherwise the emptiest one
    (Kubernetes' default scoring, NodeResourcesFit with LeastAllocated).
    """
    moments = [(worker.launched, 1, worker) for worker in workers]
    moments += [(worker.gone, 0, worker) for worker in workers]
    free: dict[int, int] = {}
    opened: dict[int, float] = {}
    where: dict[str, int] = {}
    held = 0.0
    for number, (now, comes, worker) in enumerate(sorted(moments, key=lambda each: each[:2])):
        if comes:
            fitting = [node for node, left in free.items() if left >= worker.gpus]
            choose = min if packed else max
            node = choose(fitting, key=lambda node: free[node]) if fitting else number
            opened.setdefault(node, now)
            free[node] = free.get(node, GPUS) - worker.gpus
            where[worker.name] = node
        else:
            node = where.pop(worker.name)
            free[node] += worker.gpus
            if free[node] == GPUS:
                held += GPUS * (now - opened.pop(node))
                del free[node]
    return held
