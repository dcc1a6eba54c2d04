"""Control planes for files of tests, one after the other: to start one costs more than most files need of it."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from core.nodes import NodePool
from local.rehearsal import Rehearsal
from testbed.kubectl import Kubectl
from testbed.platform_stack import rehearsing

_BY_THEMSELVES = ("bindings", "componentstatuses", "endpoints", "endpointslices", "events", "leases", "replicasets")
"""Kinds whose objects come and go with others, or by themselves."""

_SECONDS = 10.0
"""Time for the garbage collector to delete what belonged to deleted objects."""


class ControlPlanes:
    """The control planes of one process. A file gets the one of the file before it, if that has left nothing there."""

    def __init__(self, folder: Path, pool: NodePool) -> None:
        self._folder, self._pool = folder, pool
        self._started = 0
        self._free: list[tuple[ExitStack, Rehearsal, Counter[str]]] = []

    @contextmanager
    def lend(self) -> Iterator[Rehearsal]:
        """A control plane without objects of other files."""
        held, rehearsal, empty = self._free.pop() if self._free else self._start()
        with held:
            yield rehearsal
            if _becomes(rehearsal, empty):
                self._free.append((held.pop_all(), rehearsal, empty))

    def stop(self) -> None:
        """Removes those that are free."""
        while self._free:
            self._free.pop()[0].close()

    def _start(self) -> tuple[ExitStack, Rehearsal, Counter[str]]:
        self._started += 1
        held = ExitStack()
        rehearsal = held.enter_context(rehearsing(self._folder / str(self._started) / "run", self._pool))
        return held, rehearsal, _objects(rehearsal)


def _becomes(rehearsal: Rehearsal, empty: Counter[str]) -> bool:
    """Whether there is nothing on it but what it started with."""
    deadline = time.monotonic() + _SECONDS
    while _objects(rehearsal) != empty:
        if time.monotonic() > deadline:
            return False
        time.sleep(1)
    return True


def _objects(rehearsal: Rehearsal) -> Counter[str]:
    """How many objects of which kind and name there are."""
    kubectl = Kubectl(rehearsal)
    kinds = kubectl.tries("api-resources", "--verbs=list", "--output=name").stdout.split()
    listed = [kind for kind in kinds if kind.partition(".")[0] not in _BY_THEMSELVES]
    return Counter(kubectl.tries("get", ",".join(listed), "--all-namespaces", "--output=name").stdout.split())
