"""A RayCluster with simulated pods, operator and Ray, and a clock that only sleeping advances."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from components.rollout.pods import Pods, UnknownRayError
from components.rollout.templates import ANNOTATION

CONTAINER = {"image": "ray:2.60.0", "env": {}, "resources": {}}
PARTS = {
    "head": {"stamp": "new", "hosts": 1, "container": CONTAINER},
    "groups": {
        "one": {"stamp": "new", "hosts": 1, "container": CONTAINER},
        "hosts": {"stamp": "new", "hosts": 2, "container": CONTAINER},
    },
}


class Simulated(Pods):
    """Pods by name, each with its body. Their Ray: when its task ends, and whether it takes new work."""

    def __init__(self) -> None:
        self.now = 0.0
        self.bodies: dict[str, dict[str, Any]] = {}
        self.busy_until: dict[str, float] = {}
        self.drained: dict[str, float | None] = {}
        self.deleted: list[str] = []
        self.ray = "2.60.0"
        self.silent: str | None = None
        """Why Ray does not answer."""
        self._numbers = itertools.count()
        self.add("head", group="headgroup", kind="head", stamp="new")

    def add(
        self,
        name: str,
        group: str = "one",
        stamp: str = "old",
        busy: float = 0,
        phase: str = "Running",
        kind: str = "worker",
    ) -> None:
        labels = {"ray.io/node-type": kind, "ray.io/group": group}
        metadata = {"name": name, "uid": f"uid-{name}", "labels": labels, "annotations": {ANNOTATION: stamp}}
        self.bodies[name] = {"metadata": metadata, "status": {"phase": phase}, "spec": {"containers": [CONTAINER]}}
        self.busy_until[name] = busy

    def all(self) -> list[Mapping[str, Any]]:
        return list(self.bodies.values())

    def delete(self, pod: Mapping[str, Any], *, unchanged: bool = False) -> None:
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        self.remove(name)
        self.add(f"new-{next(self._numbers)}", labels["ray.io/group"], "new", kind=labels["ray.io/node-type"])

    def remove(self, name: str) -> None:
        del self.bodies[name]
        self.deleted.append(name)

    def ask(self, pods: Iterable[Mapping[str, Any]], drain: Mapping[str, float | None]) -> dict[str, Any]:
        if self.silent:
            raise UnknownRayError(self.silent)
        states = {name: self._state(name) for name in self.bodies}
        accepted = [name for name, until in drain.items() if until is not None or states[name] == "IDLE"]
        self.drained |= {name: drain[name] for name in accepted}
        return {"ray": self.ray, "nodes": states, "accepted": accepted}

    def _state(self, name: str) -> str:
        busy = self.busy_until[name] > self.now
        if name in self.drained:
            return "DRAINING" if busy else "DEAD"
        return "RUNNING" if busy else "IDLE"

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now

    time = monotonic
